/* SPDX-License-Identifier: MIT */
#include "../support.h"

#include <eplb/price.h>

#include "byte_size.h"

typedef struct readable {
    const char *text;
    int64_t bytes;
} readable;

static void sizes_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const readable cases[] = {
        {"0", 0},
        {"17", 17},
        {"17B", 17},
        {"80GiB", INT64_C(85899345920)},
        {"80Gi", INT64_C(85899345920)},
        {"80G", INT64_C(80000000000)},
        {"80GB", INT64_C(80000000000)},
        {"40e9", INT64_C(40000000000)},
        {"1e+3", 1000},
        {"1.5KiB", 1536},
        {"1.5k", 1500},
        {"2K", 2000},
        {"42MiB", 44040192},
        {"1M", 1000000},
        {"1TiB", INT64_C(1099511627776)},
        {"1T", INT64_C(1000000000000)},
        {"0.3KiB", 307}, /* parts of a byte are dropped */
        {"8192TiB", LARGEST_SIZE},
        {"9007199254740992", LARGEST_SIZE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t bytes = -1;
        const char *end = cases[i].text + strlen(cases[i].text);
        assert_true(parse_byte_size(cases[i].text, end, &bytes));
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void what_is_no_size_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",        "B",    "GiB",    "-1",    "+1",  " 1",
                                        "1 GiB",   "1gib", "1Q",     "1GiBB", "1iB", "0x10",
                                        "inf",     "nan",  "1e999",  "1e",    "0.5", ".5G",
                                        "8193TiB", "1e16", "80GiB,", "1..5",  "80%", "1E3"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t bytes = -1;
        bool is_read = parse_byte_size(texts[i], texts[i] + strlen(texts[i]), &bytes);
        if (is_read) {
            print_error("'%s' is read\n", texts[i]);
        }
        assert_false(is_read);
        assert_int_equal(bytes, -1);
    }
}

static void reading_stops_at_the_given_end(void **state)
{
    (void)state;
    static const char list[] = "80GiB,4G";
    int64_t bytes = -1;
    assert_true(parse_byte_size(list, list + 5, &bytes));
    assert_int_equal(bytes, INT64_C(85899345920));
    assert_true(parse_byte_size(list + 6, list + 8, &bytes));
    assert_int_equal(bytes, INT64_C(4000000000));
    static const char longer[] = "8000";
    assert_false(parse_byte_size(longer, longer + 2, &bytes));
}

static void sizes_are_written_in_the_largest_unit_below_them(void **state)
{
    (void)state;
    static const readable cases[] = {
        {"0 B", 0},
        {"1023 B", 1023},
        {"1 KiB", 1024},
        {"42 MiB", 44040192},
        {"74.51 GiB", INT64_C(80000000000)},
        {"1.5 TiB", INT64_C(1649267441664)},
        {"8 PiB", LARGEST_SIZE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];
        assert_string_equal(eplb_bytes_text(cases[i].bytes, text, sizeof(text)), cases[i].text);
    }
}

TEST_MAIN(cmocka_unit_test(sizes_are_read_as_people_write_them),
          cmocka_unit_test(what_is_no_size_is_refused),
          cmocka_unit_test(reading_stops_at_the_given_end),
          cmocka_unit_test(sizes_are_written_in_the_largest_unit_below_them))
