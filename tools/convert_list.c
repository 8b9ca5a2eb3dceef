/* SPDX-License-Identifier: MIT */
/* All formats, and what this build does with them. */
#include <stdio.h>

#include "convert.h"
#include "message.h"
#include "output.h"

/* One line of the table. */
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

static void print_line(const eplb_format *format, const ability *what)
{
    uint32_t flags = eplb_format_flags(format);
    bool reads = (flags & what->reads) != 0;
    bool writes = (flags & what->writes) != 0;
    char engine[100];
    const char *change = eplb_format_change(format);
    snprintf(engine, sizeof(engine), "%s%s%s%s", eplb_format_engine(format),
             (flags & EPLB_FORMAT_OPEN) != 0 ? ", open" : "", change[0] != '\0' ? ": " : "",
             change);
    printf("%-12s %-10s %-11s %-48s %s\n", eplb_format_name(format), what->what,
           reads && writes ? "read, write"
           : reads         ? "read"
                           : "write",
           engine, eplb_format_recognised_by(format));
}

static int print_table(void)
{
    printf("%-12s %-10s %-11s %-48s %s\n", "FORMAT", "WHAT", "THIS BUILD", "ENGINE",
           "RECOGNISED BY");
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        const eplb_format *format = eplb_format_at(i);
        bool any = false;
        for (size_t a = 0; a < ABILITIES; a++) {
            if ((eplb_format_flags(format) & (abilities[a].reads | abilities[a].writes)) != 0) {
                print_line(format, &abilities[a]);
                any = true;
            }
        }
        if (!any) {
            printf("%-12s %-10s %-11s %-48s %s\n", eplb_format_name(format), "-", "nothing",
                   eplb_format_engine(format), eplb_format_recognised_by(format));
        }
    }
    puts("\nopen: known only from a change that its engine has not merged. gzip and zstd are "
         "unpacked\nwhere the build has them.");
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
    cJSON_AddStringToObject(object, "state", (flags & EPLB_FORMAT_OPEN) != 0 ? "open" : "released");
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
