/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <eplb/version.h>

#include "commands.h"
#include "message.h"
#include "nearest.h"
#include "output.h"

typedef struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} subcommand;

static const subcommand subcommands[] = {
    {"plan", command_plan, "place experts on GPUs so that no GPU gets much more load than others"},
    {"report", command_report, "say how uneven logged steps are, what can be done, and by what"},
    {"sweep", command_sweep, "say how many redundant experts are worth their memory"},
    {"diff", command_diff, "say what differs between two placements, and what it costs and gains"},
    {"convert", command_convert, "write counts or placements in another engine's format"},
    {"validate", command_validate, "check a placement file against the rules that engines need"},
    {"simulate", command_simulate, "show what a router's randomness alone does to the balance"},
    {"synth", command_synth, "make a synthetic log of counts, the same for the same seed"},
};

#define SUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static int print_help(void)
{
    puts(
        "Usage: eplb COMMAND [OPTION...]\n"
        "       eplb COMMAND --help\n"
        "       eplb --version\n"
        "\n"
        "Expert placement for Mixture-of-Experts serving: from logged counts of tokens per expert\n"
        "to the placement map that a serving engine loads.\n"
        "\n"
        "Commands:");
    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        printf("  %-12s%s\n", subcommands[i].name, subcommands[i].summary);
    }
    puts("\n"
         "Exit codes: 0 done; 1 bad input, infeasible or an I/O error; 2 wrong usage.\n"
         "\n"
         "Example:\n"
         "  eplb plan --load counts.jsonl --gpus 32 --redundant 32 --out map.json");
    return output_finish(EXIT_DONE);
}

static const subcommand *find_subcommand(const char *name)
{
    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        if (strcmp(subcommands[i].name, name) == 0) {
            return &subcommands[i];
        }
    }
    return NULL;
}

static int unknown_subcommand(const char *name)
{
    nearest search;
    nearest_begin(&search, name);
    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        nearest_offer(&search, subcommands[i].name);
    }
    char hint[64];
    return usage_error(NULL, "unknown %s '%s'%s", name[0] == '-' ? "option" : "command", name,
                       nearest_hint(&search, "", hint, sizeof(hint)));
}

static int help_about(const char *name)
{
    const subcommand *found = find_subcommand(name);
    if (found == NULL) {
        return unknown_subcommand(name);
    }
    char option[] = "--help";
    char *arguments[] = {option};
    return found->run(1, arguments);
}

/* A standard stream that is closed would give its number to the next file opened, and results or
 * messages would end up in that file. Opened this way, the use of a closed stream fails. */
static void occupy_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

int main(int argc, char **argv)
{
    occupy_standard_streams();
    if (argc < 2) {
        return usage_error(NULL, "a command is missing");
    }
    const char *name = argv[1];
    bool wants_help = strcmp(name, "help") == 0;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (wants_help && argc == 2)) {
        return print_help();
    }
    if (wants_help) {
        return help_about(argv[2]);
    }
    if (strcmp(name, "--version") == 0) {
        printf("eplb %s\n", eplb_version());
        return output_finish(EXIT_DONE);
    }
    const subcommand *found = find_subcommand(name);
    return found != NULL ? found->run(argc - 2, argv + 2) : unknown_subcommand(name);
}
