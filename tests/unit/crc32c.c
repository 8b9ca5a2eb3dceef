/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "base/crc32c.h"

static uint32_t crc_of(const char *text)
{
    return eplb_crc32c(0, (const uint8_t *)text, strlen(text));
}

/* RFC 3720, B.4, and the check value of the CRC catalogue. */
static void published_examples_are_met(void **state)
{
    (void)state;
    uint8_t bytes[32] = {0};
    assert_int_equal(crc_of(""), 0);
    assert_int_equal(crc_of("123456789"), 0xe3069283u);
    assert_int_equal(eplb_crc32c(0, bytes, sizeof(bytes)), 0x8a9136aau);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(eplb_crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43u);
    for (uint8_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = i;
    }
    assert_int_equal(eplb_crc32c(0, bytes, sizeof(bytes)), 0x46dd794eu);
}

static void each_byte_counts_as_its_bits_do(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t crc = byte ^ 0xffffffffu;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
        const uint8_t one = (uint8_t)byte;
        assert_int_equal(eplb_crc32c(0, &one, 1), ~crc);
    }
}

static void parts_give_what_the_whole_gives(void **state)
{
    (void)state;
    static const uint8_t text[] = "parts of any length";
    for (size_t first = 0; first <= sizeof(text); first++) {
        uint32_t crc = eplb_crc32c(0, text, first);
        assert_int_equal(eplb_crc32c(crc, text + first, sizeof(text) - first),
                         eplb_crc32c(0, text, sizeof(text)));
    }
}

TEST_MAIN(cmocka_unit_test(published_examples_are_met),
          cmocka_unit_test(each_byte_counts_as_its_bits_do),
          cmocka_unit_test(parts_give_what_the_whole_gives))
