/* SPDX-License-Identifier: MIT */
/* Files compressed with gzip and zstd read as what they unpack to, and are refused when they are
 * not whole. */
#include <sys/stat.h>

#include "packed.h"

static const char *const count_files[] = {
    "format/counts.csv",
    "format/counts.jsonl",
    "format/steps.npy",
    "format/steps_fortran.npy",
    "format/sglang_logical_count.json",
};

static void packed_counts_are_those_of_the_plain_file(void **state)
{
    (void)state;
    for (const packer *pack = packers; *pack != NULL; pack++) {
        for (size_t i = 0; i < sizeof(count_files) / sizeof(count_files[0]); i++) {
            test_path path = test_data(count_files[i]);
            bytes plain = bytes_of_file(path.text);
            bytes packed = {0};
            (*pack)(&packed, plain.data, plain.size);
            assert_same_counts(path.text, &packed);
            free(packed.data);
            free(plain.data);
        }
    }
}

/* A placement as vLLM's file. */
static char *map_of(const char *path)
{
    eplb_read_options options = options_for("");
    options.gpus = 4;
    eplb_placement *placement;
    eplb_error error;
    char *text;
    size_t length;
    assert_ok(eplb_placement_read(&placement, NULL, path, &options, NULL, &error), &error);
    assert_ok(
        eplb_placement_format(placement, NULL, eplb_format_find("vllm"), &text, &length, &error),
        &error);
    eplb_placement_destroy(&placement);
    return text;
}

static void packed_placements_are_those_of_the_plain_file(void **state)
{
    (void)state;
    static const char *const names[] = {"format/ascend_expert_map.json",
#ifdef HAVE_YAML
                                        "format/trtllm_placement.yaml",
#endif
                                        "format/sglang_placement.json"};
    for (const packer *pack = packers; *pack != NULL; pack++) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            test_path path = test_data(names[i]);
            bytes plain = bytes_of_file(path.text);
            bytes packed = {0};
            (*pack)(&packed, plain.data, plain.size);
            test_write_file("packed", packed.data, packed.size);
            char *expected = map_of(path.text);
            char *actual = map_of("packed");
            assert_string_equal(actual, expected);
            free(actual);
            free(expected);
            free(packed.data);
            free(plain.data);
        }
    }
}

/* As `cat a.gz b.gz` makes them; each half begins in the middle of a line. */
static void members_and_frames_behind_each_other_are_one_file(void **state)
{
    (void)state;
    test_path path = test_data("format/counts.jsonl");
    bytes plain = bytes_of_file(path.text);
    size_t half = plain.size / 2 + 3;
    for (const packer *pack = packers; *pack != NULL; pack++) {
        bytes packed = {0};
        (*pack)(&packed, plain.data, half);
        (*pack)(&packed, "", 0);
        (*pack)(&packed, plain.data + half, plain.size - half);
        assert_same_counts(path.text, &packed);
        free(packed.data);
    }
    free(plain.data);
}

static void zeros_behind_gzip_and_skippable_zstd_frames_are_no_data(void **state)
{
    (void)state;
    test_path path = test_data("format/counts.jsonl");
    bytes plain = bytes_of_file(path.text);
#ifdef HAVE_ZLIB
    bytes gzip = {0};
    add_gzip(&gzip, plain.data, plain.size);
    add_integer(&gzip, 0, 7);
    assert_same_counts(path.text, &gzip);
    free(gzip.data);
#endif
#ifdef HAVE_ZSTD
    bytes zstd = {0};
    add_bytes(&zstd, "\x5f\x2a\x4d\x18\x00\x00\x00\x00", 8);
    add_zstd(&zstd, plain.data, plain.size);
    add_bytes(&zstd, "\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
    assert_same_counts(path.text, &zstd);
    free(zstd.data);
#endif
    free(plain.data);
}

static eplb_status read_packed(const bytes *packed, size_t size, const char *format,
                               eplb_error *error)
{
    eplb_read_options options = options_for(format);
    test_write_file("packed", packed->data, size);
    return read_rows("packed", &options, NULL, NULL, error);
}

static void a_file_that_was_cut_is_never_whole(void **state)
{
    (void)state;
    test_path path = test_data("format/counts.jsonl");
    bytes plain = bytes_of_file(path.text);
    for (const packer *pack = packers; *pack != NULL; pack++) {
        bytes packed = {0};
        (*pack)(&packed, plain.data, plain.size);
        for (size_t size = 0; size < packed.size; size++) {
            eplb_error error;
            assert_status(read_packed(&packed, size, "jsonl", &error), EPLB_ERROR_PARSE, &error);
            assert_true(size < 4 || strstr(error.message, "the file ends too early") != NULL);
        }
        free(packed.data);
    }
    free(plain.data);
}

/* Some bits mean nothing, such as those of the time; what is read as whole has the same counts. */
static void a_wrong_byte_gives_no_other_counts(void **state)
{
    (void)state;
    test_path path = test_data("format/counts.jsonl");
    bytes expected = transcript_of(path.text);
    bytes plain = bytes_of_file(path.text);
    for (const packer *pack = packers; *pack != NULL; pack++) {
        bytes packed = {0};
        size_t refused = 0;
        (*pack)(&packed, plain.data, plain.size);
        for (size_t i = 0; i < packed.size; i++) {
            bytes read = {0};
            packed.data[i] ^= 1;
            test_write_file("packed", packed.data, packed.size);
            packed.data[i] ^= 1;
            if (read_rows("packed", NULL, write_row, &read, NULL) == EPLB_OK) {
                assert_int_equal(read.size, expected.size);
                assert_memory_equal(read.data, expected.data, expected.size);
            } else {
                refused++;
            }
            free(read.data);
        }
        assert_true(refused + 10 > packed.size);
        free(packed.data);
    }
    free(plain.data);
    free(expected.data);
}

static void messages_name_the_byte_of_the_packed_data(void **state)
{
    (void)state;
    static const char line[] = "{\"layer\":0,\"counts\":[1]}\n";
    eplb_error error;
#ifdef HAVE_ZLIB
    bytes gzip = {0};
    add_gzip(&gzip, line, strlen(line));
    size_t end = gzip.size;
    char expected[160];
    gzip.data[end - 8] ^= 1;
    assert_status(read_packed(&gzip, end, "jsonl", &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "packed: byte ");
    assert_contains(error.message, " of the gzip data: incorrect data check");
    gzip.data[end - 8] ^= 1;
    add_bytes(&gzip, "junk", 4);
    assert_status(read_packed(&gzip, gzip.size, "jsonl", &error), EPLB_ERROR_PARSE, &error);
    snprintf(expected, sizeof(expected),
             "packed: byte %zu of the gzip data: no gzip member, and more than its end", end);
    assert_string_equal(error.message, expected);
    free(gzip.data);
#endif
#ifdef HAVE_ZSTD
    bytes zstd = {0};
    add_zstd(&zstd, line, strlen(line));
    zstd.data[zstd.size - 1] ^= 1;
    assert_status(read_packed(&zstd, zstd.size, "jsonl", &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, " of the zstd data: Restored data doesn't match checksum");
    free(zstd.data);
#endif
    (void)line;
    (void)error;
}

static void a_window_above_the_limit_is_refused(void **state)
{
    (void)state;
#ifdef HAVE_ZSTD
    static const char line[] = "{\"layer\":0,\"counts\":[1]}\n";
    eplb_error error;
    bytes frame = begin_frame(23);
    add_raw_block(&frame, line, true);
    assert_ok(read_packed(&frame, frame.size, "jsonl", &error), &error);
    free(frame.data);
    frame = begin_frame(24);
    add_raw_block(&frame, line, true);
    assert_status(read_packed(&frame, frame.size, "jsonl", &error), EPLB_ERROR_LIMIT, &error);
    assert_contains(error.message, "needs a window of more than 8 MiB");
    free(frame.data);
#endif
}

static void each_failing_allocation_is_survived(void **state)
{
    (void)state;
    static const char *const names[] = {"format/counts.jsonl", "format/steps_fortran.npy"};
    for (const packer *pack = packers; *pack != NULL; pack++) {
        for (int i = 0; i < 2; i++) {
            test_path path = test_data(names[i]);
            bytes plain = bytes_of_file(path.text);
            bytes packed = {0};
            (*pack)(&packed, plain.data, plain.size);
            test_write_file("packed", packed.data, packed.size);
            test_each_failing_allocation(read_counts, "packed");
            free(packed.data);
            free(plain.data);
        }
    }
}

/* The length of this header is written as the bytes 1f 8b 00. */
static void a_header_whose_length_looks_like_gzip_is_none(void **state)
{
    (void)state;
    static const char header[] =
        "{\"0_0\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}";
    bytes file = {0};
    eplb_error error;
    add_integer(&file, 0x8b1f, 8);
    add_bytes(&file, header, strlen(header));
    while (file.size < 8 + 0x8b1f) {
        add_bytes(&file, " ", 1);
    }
    add_integer(&file, 7, 8);
    assert_ok(read_packed(&file, file.size, "trtllm", &error), &error);
    free(file.data);
}

static void a_build_without_the_codec_says_so(void **state)
{
    (void)state;
    eplb_error error;
    (void)error;
#ifndef HAVE_ZLIB
    test_write_text("packed", "\x1f\x8b\x08");
    assert_status(read_rows("packed", NULL, NULL, NULL, &error), EPLB_ERROR_UNSUPPORTED, &error);
    assert_string_equal(error.message,
                        "packed: compressed with gzip, and this build is without zlib");
#endif
#ifndef HAVE_ZSTD
    test_write_text("packed", "\x28\xb5\x2f\xfd.");
    assert_status(read_rows("packed", NULL, NULL, NULL, &error), EPLB_ERROR_UNSUPPORTED, &error);
    assert_string_equal(error.message,
                        "packed: compressed with zstd, and this build is without libzstd");
#endif
}

static void what_no_build_unpacks_says_so(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *bytes;
    } cases[] = {{"xz", "\xfd"
                        "7zXZ\0\0\x04"},
                 {"bzip2", "BZh91AY&SY\x12\x34"},
                 {"lz4", "\x04\x22\x4d\x18\x64\x40\xa7\x11"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_error error;
        char expected[100];
        test_write_file("packed", cases[i].bytes, 8 + (i == 1 ? 4 : 0));
        assert_status(read_rows("packed", NULL, NULL, NULL, &error), EPLB_ERROR_UNSUPPORTED,
                      &error);
        snprintf(expected, sizeof(expected),
                 "packed: compressed with %s, which is not read: unpack it first", cases[i].name);
        assert_string_equal(error.message, expected);
    }
}

#ifdef HAVE_ZLIB
static void write_gzip(const char *path, const char *name)
{
    bytes plain = bytes_of_file(test_data(name).text);
    bytes packed = {0};
    add_gzip(&packed, plain.data, plain.size);
    test_write_file(path, packed.data, packed.size);
    free(plain.data);
    free(packed.data);
}
#endif

/* The ranks of MindIE are read where they lie, those of TensorRT-LLM must be unpacked. */
static void packed_files_of_a_directory_are_its_ranks(void **state)
{
    (void)state;
#ifdef HAVE_ZLIB
    bytes plain = transcript_of(test_data("format/mindie").text);
    assert_int_equal(mkdir("d", 0700), 0);
    for (int r = 0; r < 4; r++) {
        char from[32];
        char to[32];
        snprintf(from, sizeof(from), "format/mindie/decode_%d.csv", r);
        snprintf(to, sizeof(to), "d/decode_%d.csv.gz", r);
        write_gzip(to, from);
    }
    bytes packed = transcript_of("d");
    assert_int_equal(packed.size, plain.size);
    assert_memory_equal(packed.data, plain.data, plain.size);
    free(plain.data);
    free(packed.data);

    eplb_error error;
    assert_int_equal(mkdir("t", 0700), 0);
    write_gzip("t/rank0.safetensors.gz", "format/trtllm_stat/rank0.safetensors");
    test_write_text("t/meta_info.json", "{\"num_experts\":8,\"num_experts_per_token\":2}");
    assert_status(read_rows("t", NULL, NULL, NULL, &error), EPLB_ERROR_UNSUPPORTED, &error);
    assert_string_equal(error.message, "t/rank0.safetensors.gz: a file of safetensors cannot be "
                                       "read while it is compressed: unpack it first, with gunzip "
                                       "or unzstd");
#endif
}

TEST_MAIN(INSIDE(packed_counts_are_those_of_the_plain_file),
          INSIDE(packed_placements_are_those_of_the_plain_file),
          INSIDE(members_and_frames_behind_each_other_are_one_file),
          INSIDE(zeros_behind_gzip_and_skippable_zstd_frames_are_no_data),
          INSIDE(a_file_that_was_cut_is_never_whole), INSIDE(a_wrong_byte_gives_no_other_counts),
          INSIDE(messages_name_the_byte_of_the_packed_data),
          INSIDE(a_window_above_the_limit_is_refused),

          INSIDE(each_failing_allocation_is_survived),

          INSIDE(a_header_whose_length_looks_like_gzip_is_none),
          INSIDE(a_build_without_the_codec_says_so), INSIDE(what_no_build_unpacks_says_so),
          INSIDE(packed_files_of_a_directory_are_its_ranks))
