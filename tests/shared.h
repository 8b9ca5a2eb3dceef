/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TESTS_SHARED_H
#define EPLB_TESTS_SHARED_H

#include <stdlib.h>

/* Where files lie that are too large, or not free, for the repository: what the user says, else
 * what Meson sets for a developer's checkout. They may be missing. */
static inline const char *test_shared_directory(void)
{
    const char *directory = getenv("EPLB_SHARED");
    directory = directory != NULL ? directory : getenv("EPLB_SHARED_DEFAULT");
    return directory != NULL ? directory : "";
}

#endif
