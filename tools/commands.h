/* SPDX-License-Identifier: MIT */
/* The sub-commands. Each gets the arguments after its name and returns the exit code. */
#ifndef EPLB_TOOLS_COMMANDS_H
#define EPLB_TOOLS_COMMANDS_H

int command_plan(int argc, char **argv);
int command_report(int argc, char **argv);
int command_sweep(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_validate(int argc, char **argv);
int command_synth(int argc, char **argv);
int command_simulate(int argc, char **argv);

#endif
