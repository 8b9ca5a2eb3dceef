/* SPDX-License-Identifier: MIT */
#include <eplb/version.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

const char *eplb_version(void)
{
    return TEXT(EPLB_VERSION_MAJOR) "." TEXT(EPLB_VERSION_MINOR) "." TEXT(EPLB_VERSION_PATCH);
}
