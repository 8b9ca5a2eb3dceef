/* SPDX-License-Identifier: MIT */
#include "engines.h"

#include <stdio.h>

#include "message.h"
#include "nearest.h"

static int refuse(const char *command, const char *name)
{
    char names[128];
    char hint[64];
    size_t used = 0;
    nearest search;
    nearest_begin(&search, name);
    for (size_t i = 0; eplb_engine_at(i) != NULL && used < sizeof(names); i++) {
        const char *known = eplb_engine_name(eplb_engine_at(i));
        int length = snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", known);
        used += length > 0 ? (size_t)length : 0;
        nearest_offer(&search, known);
    }
    return usage_error(command, "--engine '%s': not one of %s%s", name, names,
                       nearest_hint(&search, "", hint, sizeof(hint)));
}

int find_engine(const char *command, const char *name, const eplb_engine **engine)
{
    *engine = eplb_engine_find(name);
    return name == NULL || *engine != NULL ? EXIT_DONE : refuse(command, name);
}

eplb_status check_loads_format(const eplb_engine *engine, const eplb_format *format,
                               const char *path, eplb_error *error)
{
    if (engine == NULL || eplb_engine_of_format(format) == engine) {
        return EPLB_OK;
    }
    const char *wanted = eplb_engine_format_name(engine);
    return eplb_error_set(error, EPLB_ERROR_DATA,
                          "%.300s: a file of format %s, which %s does not load: 'eplb convert FILE "
                          "--to %s --out OTHER' makes one that it loads",
                          path, eplb_format_name(format), eplb_engine_title(engine), wanted);
}
