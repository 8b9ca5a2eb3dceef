/* SPDX-License-Identifier: MIT */
/* All formats, and what this build does with them. */
#include <stdio.h>

#include "convert.h"
#include "line.h"
#include "message.h"
#include "output.h"
#include "wrap.h"

/* What a format may do. */
typedef struct ability {
    const char *what;
    uint32_t reads;
    uint32_t writes;
} ability;

static const ability abilities[] = {
    {"counts", EPLB_FORMAT_READS_COUNTS, EPLB_FORMAT_WRITES_COUNTS},
    {"placement", EPLB_FORMAT_READS_PLACEMENT, EPLB_FORMAT_WRITES_PLACEMENT},
};
#define ABILITIES (sizeof(abilities) / sizeof(abilities[0]))

static const char *words_for(const eplb_format *format, const ability *what)
{
    bool reads = (eplb_format_flags(format) & what->reads) != 0;
    bool writes = (eplb_format_flags(format) & what->writes) != 0;
    return reads && writes ? "read, write" : reads ? "read" : writes ? "write" : "-";
}

static bool is_open(const eplb_format *format)
{
    return (eplb_format_flags(format) & EPLB_FORMAT_OPEN) != 0;
}

/* Cells of the table but the last, which is wrapped. */
#define CELLS "%-13s%-12s%-12s%-14s"

static void print_line(const eplb_format *format)
{
    char engine[32];
    snprintf(engine, sizeof(engine), "%s%s", eplb_format_engine(format),
             is_open(format) ? ", open" : "");
    int column = printf(CELLS, eplb_format_name(format), words_for(format, &abilities[0]),
                        words_for(format, &abilities[1]), engine);
    write_wrapped(stdout, eplb_format_recognised_by(format), column, column);
}

/* The changes that are public. */
static void print_changes(void)
{
    char text[512];
    line changes = line_begin(text, sizeof(text));
    line_add(&changes, "open: known only from a change that its engine has not merged");
    const char *separator = ":";
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        const eplb_format *format = eplb_format_at(i);
        if (eplb_format_change(format)[0] != '\0') {
            line_add(&changes, "%s %s of %s", separator, eplb_format_name(format),
                     eplb_format_change(format));
            separator = ",";
        }
    }
    write_wrapped(stdout, text, 0, 0);
}

static int print_table(void)
{
    printf(CELLS "%s\n", "FORMAT", "COUNTS", "PLACEMENT", "ENGINE", "RECOGNISED BY");
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        print_line(eplb_format_at(i));
    }
    putchar('\n');
    print_changes();
    puts("What this build reads and writes; where it has gzip and zstd, files may be compressed.");
    return output_finish(EXIT_DONE);
}

static cJSON *describe(const eplb_format *format)
{
    uint32_t flags = eplb_format_flags(format);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", eplb_format_name(format));
    cJSON_AddStringToObject(object, "description", eplb_format_description(format));
    cJSON_AddStringToObject(object, "engine", eplb_format_engine(format));
    cJSON_AddStringToObject(object, "recognised_by", eplb_format_recognised_by(format));
    cJSON_AddStringToObject(object, "state", is_open(format) ? "open" : "released");
    if (eplb_format_change(format)[0] != '\0') {
        cJSON_AddStringToObject(object, "change", eplb_format_change(format));
    } else {
        cJSON_AddNullToObject(object, "change");
    }
    for (size_t a = 0; a < ABILITIES; a++) {
        cJSON *can = cJSON_AddObjectToObject(object, abilities[a].what);
        cJSON_AddBoolToObject(can, "read", (flags & abilities[a].reads) != 0);
        cJSON_AddBoolToObject(can, "write", (flags & abilities[a].writes) != 0);
    }
    return object;
}

int convert_list(bool json)
{
    if (!json) {
        return print_table();
    }
    cJSON *document = json_begin("eplb.formats/1");
    cJSON *list = cJSON_AddArrayToObject(document, "formats");
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        cJSON_AddItemToArray(list, describe(eplb_format_at(i)));
    }
    return json_finish(document, EXIT_DONE);
}
