/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <eplb/version.h>

static void library_has_the_version_of_its_headers(void **state)
{
    (void)state;
    char expected[64];
    snprintf(expected, sizeof(expected), "%d.%d.%d", EPLB_VERSION_MAJOR, EPLB_VERSION_MINOR,
             EPLB_VERSION_PATCH);
    assert_string_equal(eplb_version(), expected);
}

TEST_MAIN(cmocka_unit_test(library_has_the_version_of_its_headers))
