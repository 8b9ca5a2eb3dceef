/* SPDX-License-Identifier: MIT */
#include "wrap.h"

#include <string.h>

#define WIDTH 100

/* Length of the word at `text`; "[--name VALUE]" is one. */
static int word_length(const char *text)
{
    size_t length = text[0] == '[' ? strcspn(text, "]") : 0;
    return (int)(length + strcspn(text + length, " "));
}

void write_wrapped(FILE *out, const char *text, int column, int indent)
{
    int length = word_length(text);
    fprintf(out, "%.*s", length, text);
    column += length;
    for (const char *word = text + length; *word == ' '; word += length) {
        word++;
        length = word_length(word);
        if (column + 1 + length > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", length, word);
        column += length;
    }
    fputc('\n', out);
}
