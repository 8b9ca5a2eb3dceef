/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_DISPLAY_NAME_H
#define EPLB_FORMAT_DISPLAY_NAME_H

/* A file as messages name it. */
typedef struct eplb_display_name {
    char text[192];
} eplb_display_name;

/* "standard input" for "-"; else the path. A long one is shortened in the middle, so that a message
 * has room for what is wrong. */
eplb_display_name eplb_display_name_of(const char *path);

#endif
