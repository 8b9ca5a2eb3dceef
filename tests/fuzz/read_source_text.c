/* SPDX-License-Identifier: MIT */
/* The text of a source, [NAME=]PATH[,PATH...][:WEIGHT]. Paths are looked up in the current
 * directory only. */
#include <math.h>
#include <string.h>

#include "format/source_text.h"
#include "fuzz.h"

static void expect_source(const eplb_source_text *parsed)
{
    if (parsed->name == NULL || parsed->name[0] == '\0' || !isfinite(parsed->weight) ||
        !(parsed->weight > 0) || parsed->files < 1) {
        fuzz_fail("a source '%s' of %d files that weighs %g",
                  parsed->name != NULL ? parsed->name : "", parsed->files, parsed->weight);
    }
    for (int32_t i = 0; i < parsed->files; i++) {
        if (parsed->paths[i][0] == '\0') {
            fuzz_fail("path %d of source '%s' is empty", i, parsed->name);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    if (size >= sizeof(text) || memchr(data, '/', size) != NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    eplb_hooks hooks = fuzz_hooks(fuzz_worth(data, size), 1);
    eplb_source_text parsed;
    eplb_error error;
    eplb_status status = eplb_source_text_parse(&parsed, &hooks, text, &error);
    if (status == EPLB_OK) {
        expect_source(&parsed);
        eplb_source_text_clear(&parsed);
    } else {
        fuzz_expect_message(status, &error);
    }
    fuzz_expect_nothing_live();
    return 0;
}
