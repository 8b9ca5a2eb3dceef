/* SPDX-License-Identifier: MIT */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 31 /* no name of ours is longer */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Edit distance (insert, delete, replace) of two words of at most LONGEST bytes. */
static int distance(const char *a, const char *b)
{
    int row[LONGEST + 1];
    int length = (int)strlen(b);
    for (int j = 0; j <= length; j++) {
        row[j] = j;
    }
    for (int i = 1; a[i - 1] != '\0'; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = smaller(replaced, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[length];
}

void nearest_begin(nearest *search, const char *word)
{
    size_t length = strlen(word);
    *search = (nearest){.word = word, .distance = length > LONGEST ? 0 : (int)length / 3 + 2};
}

void nearest_offer(nearest *search, const char *name)
{
    if (search->distance == 0 || strlen(name) > LONGEST) {
        return;
    }
    int edits = distance(search->word, name);
    if (edits < search->distance) {
        search->distance = edits;
        search->name = name;
    }
}

const char *nearest_hint(const nearest *search, const char *prefix, char *text, int size)
{
    text[0] = '\0';
    if (search->name != NULL) {
        snprintf(text, (size_t)size, "; did you mean '%s%s'?", prefix, search->name);
    }
    return text;
}
