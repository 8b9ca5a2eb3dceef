/* SPDX-License-Identifier: MIT */
/* No reader is left out: each has a target of its name, which has a corpus. */
#include <eplb/format.h>

#include "support.h"

static void assert_has_corpus(const char *kind, const eplb_format *format)
{
    const char *corpora = getenv("EPLB_TEST_CORPORA");
    char name[100];
    snprintf(name, sizeof(name), "%s-%s", kind, eplb_format_name(format));
    assert_non_null(corpora);
    if (access(test_join(corpora, name).text, R_OK) != 0) {
        fail_msg("%s is not among the fuzz targets", name);
    }
}

static void each_reader_has_a_fuzz_target(void **state)
{
    (void)state;
    const eplb_format *format;
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        uint32_t flags = eplb_format_flags(format);
        if ((flags & EPLB_FORMAT_READS_COUNTS) != 0) {
            assert_has_corpus("counts", format);
        }
        if ((flags & EPLB_FORMAT_READS_PLACEMENT) != 0) {
            assert_has_corpus("placement", format);
        }
    }
}

TEST_MAIN(cmocka_unit_test(each_reader_has_a_fuzz_target))
