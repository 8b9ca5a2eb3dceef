/* SPDX-License-Identifier: MIT */
#include "base/crc32c.h"

/* The remainder of one byte, by the compiler: those of its bits, added. Bit 7 alone is the
 * polynomial 0x1edc6f41, reflected. */
#define BIT(byte, bit, remainder) ((((byte) >> (bit)) & 1u) != 0 ? (remainder) : 0u)
#define REMAINDER(byte)                                                                            \
    (BIT(byte, 0, 0xf26b8303u) ^ BIT(byte, 1, 0xe13b70f7u) ^ BIT(byte, 2, 0xc79a971fu) ^           \
     BIT(byte, 3, 0x8ad958cfu) ^ BIT(byte, 4, 0x105ec76fu) ^ BIT(byte, 5, 0x20bd8edeu) ^           \
     BIT(byte, 6, 0x417b1dbcu) ^ BIT(byte, 7, 0x82f63b78u))
#define REMAINDERS_4(byte)                                                                         \
    REMAINDER(byte), REMAINDER(byte + 1u), REMAINDER(byte + 2u), REMAINDER(byte + 3u)
#define REMAINDERS_16(byte)                                                                        \
    REMAINDERS_4(byte), REMAINDERS_4(byte + 4u), REMAINDERS_4(byte + 8u), REMAINDERS_4(byte + 12u)
#define REMAINDERS_64(byte)                                                                        \
    REMAINDERS_16(byte), REMAINDERS_16(byte + 16u), REMAINDERS_16(byte + 32u),                     \
        REMAINDERS_16(byte + 48u)

static const uint32_t remainders[256] = {REMAINDERS_64(0u), REMAINDERS_64(64u), REMAINDERS_64(128u),
                                         REMAINDERS_64(192u)};

uint32_t eplb_crc32c(uint32_t crc, const uint8_t *bytes, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc = remainders[(crc ^ bytes[i]) & 0xffu] ^ crc >> 8;
    }
    return ~crc;
}
