/* SPDX-License-Identifier: MIT */
#ifndef EPLB_VERSION_H
#define EPLB_VERSION_H

#include <eplb/export.h>

/*
 * The version of the headers. meson.build reads these three lines: they are the only place where
 * the version is written. The soname carries the major number, and the minor one too while the
 * major is 0.
 */
#define EPLB_VERSION_MAJOR 0
#define EPLB_VERSION_MINOR 1
#define EPLB_VERSION_PATCH 0

EPLB_BEGIN_DECLS

/* The version of the library that is running, such as "0.1.0". A static string. */
EPLB_API const char *eplb_version(void);

EPLB_END_DECLS

#endif
