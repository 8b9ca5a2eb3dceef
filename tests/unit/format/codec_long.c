/* SPDX-License-Identifier: MIT */
/* Packed files that unpack to much: long logs, which are unpacked on a thread, and bombs. */
#include "packed.h"

/* The largest request is kept in `memory`. */
static eplb_status read_measured(const eplb_format *format, test_memory *memory)
{
    eplb_hooks hooks = test_hooks(memory);
    eplb_read_options options = options_for("");
    options.format = format;
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_status status = eplb_counts_open(&reader, &hooks, "packed", &options, NULL);
    while (status == EPLB_OK) {
        status = eplb_counts_next(reader, &row, NULL);
    }
    eplb_counts_close(&reader);
    return status;
}

/* Writes packed bytes, which every format of counts, or none named, must refuse with little memory.
 */
static void assert_bomb_refused(const bytes *packed)
{
    test_memory memory = {0};
    test_write_file("packed", packed->data, packed->size);
    assert_true(read_measured(NULL, &memory) < 0);
    const eplb_format *format;
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        if ((eplb_format_flags(format) & EPLB_FORMAT_READS_COUNTS) != 0) {
            assert_true(read_measured(format, &memory) < 0);
        }
    }
    assert_true(memory.largest < (size_t)1 << 20);
    assert_int_equal(memory.live, 0);
}

#ifdef HAVE_ZLIB
/* The text and 2^30 zeros: a block of 2^20 of them that refers to nothing before it is repeated. */
static bytes gzip_bomb(const char *text)
{
    static unsigned char zeros[1 << 20];
    unsigned char packed[8192];
    z_stream encoder = {.next_in = (Bytef *)(uintptr_t)text,
                        .avail_in = (uInt)strlen(text),
                        .next_out = packed,
                        .avail_out = sizeof(packed)};
    bytes bomb = {0};
    assert_int_equal(deflateInit2(&encoder, 6, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&encoder, Z_FULL_FLUSH), Z_OK);
    size_t head = sizeof(packed) - encoder.avail_out;
    encoder.next_in = zeros;
    encoder.avail_in = sizeof(zeros);
    assert_int_equal(deflate(&encoder, Z_FULL_FLUSH), Z_OK);
    size_t size = sizeof(packed) - encoder.avail_out;
    add_bytes(&bomb, packed, head);
    for (int n = 0; n < 1024; n++) {
        add_bytes(&bomb, packed + head, size - head);
    }
    (void)deflateEnd(&encoder);
    return bomb;
}
#endif

#ifdef HAVE_ZSTD
/* The text and 2^30 zeros: a block says 2^17 times a byte. */
static bytes zstd_bomb(const char *text)
{
    bytes bomb = begin_frame(20);
    add_raw_block(&bomb, text, false);
    for (uint64_t n = 1; n <= 8192; n++) {
        add_integer(&bomb, UINT64_C(1) << 20 | 1 << 1 | (n == 8192 ? 1 : 0), 3);
        add_integer(&bomb, 0, 1);
    }
    return bomb;
}
#endif

static bytes (*const bombs[])(const char *text) = {
#ifdef HAVE_ZLIB
    gzip_bomb,
#endif
#ifdef HAVE_ZSTD
    zstd_bomb,
#endif
    NULL,
};

/* Behind each of these beginnings follow the zeros. */
static void a_gigabyte_of_zeros_costs_little_memory(void **state)
{
    (void)state;
    static const char *const beginnings[] = {"", "step,layer,expert,tokens\n",
                                             "{\"logical_count\":[", "{\"layer\":0,\"counts\":[",
                                             "1,2,"};
    for (size_t b = 0; bombs[b] != NULL; b++) {
        for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
            bytes bomb = bombs[b](beginnings[i]);
            assert_bomb_refused(&bomb);
            free(bomb.data);
        }
    }
}

/* JSON lines of 1.4 MB, more than is unpacked before a thread begins to. */
static bytes long_log(void)
{
    bytes text = {0};
    uint32_t value = 1;
    for (int step = 0; step < 40; step++) {
        char line[40000];
        int length = snprintf(line, sizeof(line), "{\"step\":%d,\"layer\":3,\"counts\":[", step);
        for (int e = 0; e < 4000; e++) {
            value = value * 1664525 + 1013904223;
            length += snprintf(line + length, sizeof(line) - (size_t)length, "%s%u",
                               e > 0 ? "," : "", value >> 8);
        }
        length += snprintf(line + length, sizeof(line) - (size_t)length, "]}\n");
        add_bytes(&text, line, (size_t)length);
    }
    return text;
}

/* Looks at the long log, packed in each way, as the file "packed". */
static void check_long_log(void (*check)(const bytes *plain, const bytes *packed))
{
    bytes plain = long_log();
    for (const packer *pack = packers; *pack != NULL; pack++) {
        bytes packed = {0};
        (*pack)(&packed, plain.data, plain.size);
        test_write_file("packed", packed.data, packed.size);
        check(&plain, &packed);
        free(packed.data);
    }
    free(plain.data);
}

static void check_content(const bytes *plain, const bytes *packed)
{
    test_write_file("plain", plain->data, plain->size);
    assert_same_counts("plain", packed);
}

static void a_long_file_reads_as_its_content(void **state)
{
    (void)state;
    check_long_log(check_content);
}

/* What is whole before the place where the bytes end is handed out. */
static void check_end(const bytes *plain, const bytes *packed)
{
    bytes rows = {0};
    eplb_error error;
    test_write_file("packed", packed->data, packed->size * 9 / 10);
    assert_status(read_rows("packed", NULL, write_row, &rows, &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, " data: the file ends too early");
    assert_true(rows.size > plain->size * 8 / 10);
    free(rows.data);
}

static void a_long_file_that_ends_too_early_is_refused_at_its_end(void **state)
{
    (void)state;
    check_long_log(check_end);
}

static void check_memory(const bytes *plain, const bytes *packed)
{
    (void)plain;
    (void)packed;
    test_each_failing_allocation(read_counts, "packed");
}

static void a_long_file_survives_each_failing_allocation(void **state)
{
    (void)state;
    check_long_log(check_memory);
}

/* A placement is held in memory: a mebibyte may come from any file, much more only from a long one.
 */
static void a_placement_that_unpacks_to_far_more_is_refused(void **state)
{
    (void)state;
    static const char map[] = "{\"physical_to_logical_map\": [[0, 1]]}";
    bytes plain = {0};
    add_bytes(&plain, map, strlen(map));
    plain.data = realloc(plain.data, (size_t)4 << 20);
    assert_non_null(plain.data);
    memset(plain.data + plain.size, ' ', ((size_t)4 << 20) - plain.size);
    eplb_read_options options = options_for("sglang");
    options.gpus = 2;
    for (const packer *pack = packers; *pack != NULL; pack++) {
        eplb_placement *placement;
        eplb_error error;
        bytes packed = {0};
        (*pack)(&packed, plain.data, (size_t)1 << 20);
        test_write_file("packed", packed.data, packed.size);
        assert_ok(eplb_placement_read(&placement, NULL, "packed", &options, NULL, &error), &error);
        eplb_placement_destroy(&placement);
        packed.size = 0;
        (*pack)(&packed, plain.data, (size_t)4 << 20);
        test_write_file("packed", packed.data, packed.size);
        eplb_status status =
            eplb_placement_read(&placement, NULL, "packed", &options, NULL, &error);
        assert_status(status, EPLB_ERROR_LIMIT, &error);
        assert_contains(error.message, " packed bytes unpack to more than ");
        free(packed.data);
    }
    free(plain.data);
}

/* So is a step of a recording with maps: two bytes of text are eight in memory. */
static void a_step_that_unpacks_to_far_more_is_refused(void **state)
{
    (void)state;
    bytes plain = {0};
    static const char begin[] =
        "{\"record_type\":\"eplb_load_stats\",\"step\":0,\"expert_load\":[[";
    add_bytes(&plain, begin, strlen(begin));
    for (int slot = 0; slot < 1000000; slot++) {
        add_bytes(&plain, "0,", slot < 999999 ? 2 : 1);
    }
    add_bytes(&plain, "]]}\n", 4);
    eplb_read_options options = options_for("vllm_stats");
    for (const packer *pack = packers; *pack != NULL; pack++) {
        eplb_error error;
        bytes packed = {0};
        (*pack)(&packed, plain.data, plain.size);
        test_write_file("packed", packed.data, packed.size);
        assert_status(read_rows("packed", &options, NULL, NULL, &error), EPLB_ERROR_LIMIT, &error);
        assert_contains(error.message,
                        " packed bytes unpack to more than 8000000: unpack it first");
        free(packed.data);
    }
    free(plain.data);
}

TEST_MAIN(INSIDE(a_gigabyte_of_zeros_costs_little_memory), INSIDE(a_long_file_reads_as_its_content),
          INSIDE(a_long_file_that_ends_too_early_is_refused_at_its_end),
          INSIDE(a_long_file_survives_each_failing_allocation),
          INSIDE(a_placement_that_unpacks_to_far_more_is_refused),
          INSIDE(a_step_that_unpacks_to_far_more_is_refused))
