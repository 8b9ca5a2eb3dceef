/* SPDX-License-Identifier: MIT */
#include "format/quote.h"

#include <string.h>

#define SHOWN ((size_t)40)

eplb_quote eplb_quote_bytes(const char *bytes, size_t length)
{
    eplb_quote quote;
    size_t shown = length < SHOWN ? length : SHOWN;
    for (size_t i = 0; i < shown; i++) {
        quote.text[i] = bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '?';
    }
    strcpy(quote.text + shown, length > SHOWN ? "..." : "");
    return quote;
}

void eplb_quote_append(char *list, size_t size, const char *bytes, size_t length)
{
    eplb_quote quote = eplb_quote_bytes(bytes, length);
    if (strlen(list) + strlen(quote.text) + 4 <= size) {
        strcat(strcat(strcat(list, " '"), quote.text), "'");
    }
}
