/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_ENGINES_H
#define EPLB_TOOLS_ENGINES_H

#include <eplb/engine.h>

/* Finds the engine that --engine of a command names; `name` NULL: *engine becomes NULL. Returns an
 * exit code, with a message when there is no such engine. */
int find_engine(const char *command, const char *name, const eplb_engine **engine);

/* EPLB_ERROR_DATA when the engine (NULL: any) does not load files of the format. */
eplb_status check_loads_format(const eplb_engine *engine, const eplb_format *format,
                               const char *path, eplb_error *error);

#endif
