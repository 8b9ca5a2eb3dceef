/* SPDX-License-Identifier: MIT */
/* Help texts. */
#include <eplb/format.h>

#include "options.h"
#include "wrap.h"

#define LEFT 26 /* column of the second column */

/* Writes the first column and returns the column reached; a long text gets a line of its own. */
static int write_left(FILE *out, const char *first, const char *second)
{
    int column = fprintf(out, "  %s%s%s", first, second[0] != '\0' ? " " : "", second);
    if (column > LEFT - 2) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", LEFT - column, "");
    return LEFT;
}

static void write_option(FILE *out, const option *opt)
{
    char name[64];
    snprintf(name, sizeof(name), "--%s", opt->name);
    int column = write_left(out, name, opt->argument != NULL ? opt->argument : "");
    write_wrapped(out, opt->help, column, LEFT);
}

static void write_formats(FILE *out)
{
    fputs("\nFormats (C: counts are read, c: written; P: placements are read, p: written):\n", out);
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        const eplb_format *format = eplb_format_at(i);
        uint32_t flags = eplb_format_flags(format);
        char can[5] = {(flags & EPLB_FORMAT_READS_COUNTS) != 0 ? 'C' : '-',
                       (flags & EPLB_FORMAT_WRITES_COUNTS) != 0 ? 'c' : '-',
                       (flags & EPLB_FORMAT_READS_PLACEMENT) != 0 ? 'P' : '-',
                       (flags & EPLB_FORMAT_WRITES_PLACEMENT) != 0 ? 'p' : '-', '\0'};
        int column = fprintf(out, "  %-*s%s  ", LEFT - 2 - 6, eplb_format_name(format), can);
        char text[256];
        snprintf(text, sizeof(text), "%s%s", eplb_format_description(format),
                 (flags & EPLB_FORMAT_OPEN) != 0 ? " (open: not merged into its engine)" : "");
        write_wrapped(out, text, column, LEFT);
    }
}

void options_help(const command *self, FILE *out)
{
    int column = fprintf(out, "Usage: eplb %s ", self->name);
    write_wrapped(out, self->usage, column, column);
    fputc('\n', out);
    write_wrapped(out, self->notes, 0, 0);
    fputs("\nOptions:\n", out);
    for (size_t i = 0; i < self->option_count; i++) {
        write_option(out, &self->options[i]);
    }
    write_left(out, "--help", "");
    fputs("show this text\n", out);
    if (self->lists_formats) {
        write_formats(out);
    }
    fprintf(out, "\nExample:\n  %s\n", self->example);
}
