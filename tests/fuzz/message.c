/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

/* How many bytes the character has; 0: it is none of UTF-8, or a control character. */
static int character_size(const unsigned char *text)
{
    static const struct {
        unsigned char mask;
        unsigned char lead;
    } forms[] = {{0x80, 0x00}, {0xe0, 0xc0}, {0xf0, 0xe0}, {0xf8, 0xf0}};
    if (text[0] < 0x20 || text[0] == 0x7f) {
        return 0;
    }
    for (int extra = 0; extra < 4; extra++) {
        if ((text[0] & forms[extra].mask) != forms[extra].lead) {
            continue;
        }
        for (int i = 1; i <= extra; i++) {
            if ((text[i] & 0xc0) != 0x80) {
                return 0;
            }
        }
        return extra + 1;
    }
    return 0;
}

void fuzz_expect_message(eplb_status status, const eplb_error *error)
{
    if (status >= 0 || error->status != (int32_t)status || error->message[0] == '\0') {
        fuzz_fail("status %d, but the error says %d: '%s'", (int)status, error->status,
                  error->message);
    }
    const unsigned char *text = (const unsigned char *)error->message;
    while (*text != '\0') {
        int size = character_size(text);
        if (size == 0) {
            fuzz_fail("byte 0x%02x in the message '%s'", *text, error->message);
        }
        text += size;
    }
}
