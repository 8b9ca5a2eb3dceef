/* SPDX-License-Identifier: MIT */
/* Arrays in .npz archives. */
#include "packing.h"
#include "recording.h"

#ifdef HAVE_ZIP

/* Reads "f.npz" and compares it with the recording. */
static void compare_row(void *context, const eplb_counts_row *row)
{
    int *rows = context;
    assert_int_equal(row->step, *rows / LAYERS);
    assert_int_equal(row->layer, *rows % LAYERS);
    assert_int_equal(row->length, EXPERTS);
    assert_memory_equal(row->counts, recorded[row->step][row->layer], sizeof(recorded[0][0]));
    ++*rows;
}

/* The column-major file has its steps fastest. */
static void compare_row_of_any_order(void *context, const eplb_counts_row *row)
{
    int *rows = context;
    assert_int_equal(row->length, EXPERTS);
    assert_memory_equal(row->counts, recorded[row->step][row->layer], sizeof(recorded[0][0]));
    ++*rows;
}

static zip_part part_of(const char *name, const char *file, bool deflated)
{
    test_path path = test_data(file);
    return (zip_part){.name = name, .content = bytes_of_file(path.text), .deflated = deflated};
}

/* Writes "f.npz", with `size` of its bytes, or all for SIZE_MAX. */
static size_t write_archive(const zip_part *parts, int count, size_t size)
{
    bytes archive = zip_of(parts, count);
    size_t whole = archive.size;
    test_write_file("f.npz", archive.data, size < whole ? size : whole);
    free(archive.data);
    return whole;
}

static eplb_status read_archive(const char *array, eplb_error *error)
{
    eplb_read_options options = options_for("");
    options.array = array;
    int rows = 0;
    eplb_status status = read_rows("f.npz", &options, compare_row, &rows, error);
    assert_true(status != EPLB_OK || rows == STEPS * LAYERS);
    return status;
}

static void stored_and_deflated_arrays_are_read(void **state)
{
    (void)state;
    for (int deflated = 0; deflated < 2; deflated++) {
        eplb_error error;
        zip_part part = part_of("steps.npy", "format/steps.npy", deflated == 1);
        write_archive(&part, 1, SIZE_MAX);
        assert_ok(read_archive(NULL, &error), &error);
        assert_ok(read_archive("steps", &error), &error);
        assert_ok(read_archive("steps.npy", &error), &error);
        free(part.content.data);
    }
}

static void column_major_arrays_are_read(void **state)
{
    (void)state;
    for (int deflated = 0; deflated < 2; deflated++) {
        eplb_error error;
        int rows = 0;
        zip_part part = part_of("steps.npy", "format/steps_fortran.npy", deflated == 1);
        write_archive(&part, 1, SIZE_MAX);
        assert_ok(read_rows("f.npz", NULL, compare_row_of_any_order, &rows, &error), &error);
        assert_int_equal(rows, STEPS * LAYERS);
        free(part.content.data);
    }
}

static void one_of_several_arrays_is_chosen_by_name(void **state)
{
    (void)state;
    eplb_error error;
    zip_part parts[] = {part_of("other.npy", "format/total_f32.npy", false),
                        part_of("notes.txt", "format/counts.csv", true),
                        part_of("steps.npy", "format/steps.npy", true)};
    write_archive(parts, 3, SIZE_MAX);
    assert_ok(read_archive("steps", &error), &error);
    assert_status(read_archive(NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_string_equal(error.message, "f.npz: 2 arrays, say which one: 'other' 'steps'");
    assert_status(read_archive("step", &error), EPLB_ERROR_ARGUMENT, &error);
    assert_string_equal(error.message, "f.npz: no array 'step' among 'other' 'steps'");
    assert_status(read_archive("notes.txt", &error), EPLB_ERROR_ARGUMENT, &error);
    for (int i = 0; i < 3; i++) {
        free(parts[i].content.data);
    }
}

static void broken_entries_are_named(void **state)
{
    (void)state;
    for (int deflated = 0; deflated < 2; deflated++) {
        eplb_error error;
        zip_part part = part_of("steps.npy", "format/steps.npy", deflated == 1);
        part.crc_fault = 1;
        write_archive(&part, 1, SIZE_MAX);
        assert_status(read_archive(NULL, &error), EPLB_ERROR_PARSE, &error);
        assert_string_equal(error.message,
                            "f.npz: zip archive: entry 'steps.npy': its checksum is wrong");
        part.crc_fault = 0;
        part.flags = 1;
        write_archive(&part, 1, SIZE_MAX);
        assert_status(read_archive(NULL, &error), EPLB_ERROR_UNSUPPORTED, &error);
        assert_string_equal(error.message, "f.npz: zip archive: entry 'steps.npy' is encrypted");
        part.flags = 0;
        zip_part twice[] = {part, part};
        write_archive(twice, 2, SIZE_MAX);
        assert_status(read_archive(NULL, &error), EPLB_ERROR_PARSE, &error);
        assert_contains(error.message, "f.npz: zip archive: entry 'steps.npy': ");
        free(part.content.data);
    }
}

static void an_archive_that_was_cut_is_never_whole(void **state)
{
    (void)state;
    eplb_error error;
    zip_part part = part_of("steps.npy", "format/steps.npy", true);
    size_t whole = write_archive(&part, 1, SIZE_MAX);
    for (size_t size = 0; size < whole; size++) {
        write_archive(&part, 1, size);
        assert_status(read_archive(NULL, &error), EPLB_ERROR_PARSE, &error);
    }
    free(part.content.data);
}

static void bytes_behind_an_archive_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    zip_part part = part_of("steps.npy", "format/steps.npy", true);
    bytes archive = zip_of(&part, 1);
    size_t end = archive.size;
    add_bytes(&archive, "junk", 4);
    test_write_file("f.npz", archive.data, archive.size);
    assert_status(read_archive(NULL, &error), EPLB_ERROR_PARSE, &error);
    assert_string_equal(
        error.message,
        "f.npz: zip archive: its directory is not at the end of the file: was it cut?");
    archive.data[end - 2] = 4; /* now they are its comment */
    test_write_file("f.npz", archive.data, archive.size);
    assert_ok(read_archive(NULL, &error), &error);
    free(archive.data);
    free(part.content.data);
}

/* Two that stand behind each other in a file: the first, with 64-bit records, too. */
static void an_archive_behind_another_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    zip_part part = part_of("steps.npy", "format/steps.npy", false);
    test_path torch = test_data("format/sglang_stat.pt");
    const bytes files[] = {zip_of(&part, 1), bytes_of_file(torch.text)};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        bytes both = {0};
        add_bytes(&both, files[i].data, files[i].size);
        add_bytes(&both, files[i].data, files[i].size);
        test_write_file("f.npz", both.data, both.size);
        assert_status(read_archive(NULL, &error), EPLB_ERROR_PARSE, &error);
        assert_string_equal(error.message,
                            "f.npz: zip archive: it does not begin where the file does");
        free(both.data);
        free(files[i].data);
    }
    free(part.content.data);
}

/* Whatever byte is wrong, the rows that were handed out as whole are those of the recording. */
static void a_wrong_byte_gives_no_other_counts(void **state)
{
    (void)state;
    zip_part part = part_of("steps.npy", "format/steps.npy", false);
    bytes archive = zip_of(&part, 1);
    size_t content = 30 + strlen(part.name);
    for (size_t i = content; i < content + part.content.size; i++) {
        eplb_error error;
        archive.data[i] ^= 0x10;
        test_write_file("f.npz", archive.data, archive.size);
        assert_true(read_rows("f.npz", NULL, NULL, NULL, &error) < 0);
        archive.data[i] ^= 0x10;
    }
    free(archive.data);
    free(part.content.data);
}

static void an_archive_that_is_packed_must_be_unpacked(void **state)
{
    (void)state;
#ifdef HAVE_ZLIB
    eplb_error error;
    zip_part part = part_of("steps.npy", "format/steps.npy", true);
    bytes archive = zip_of(&part, 1);
    bytes packed = {0};
    add_gzip(&packed, archive.data, archive.size);
    test_write_file("f.npz", packed.data, packed.size);
    assert_status(read_archive(NULL, &error), EPLB_ERROR_UNSUPPORTED, &error);
    assert_string_equal(error.message, "f.npz: a zip archive cannot be read while it is "
                                       "compressed: unpack it first, with gunzip or unzstd");
    free(packed.data);
    free(archive.data);
    free(part.content.data);
#endif
}

static void each_failing_allocation_is_survived(void **state)
{
    (void)state;
    static const char *const names[] = {"format/steps.npy", "format/steps_fortran.npy"};
    for (int i = 0; i < 2; i++) {
        zip_part part = part_of("steps.npy", names[i], i == 0);
        write_archive(&part, 1, SIZE_MAX);
        test_each_failing_allocation(read_counts, "f.npz");
        free(part.content.data);
    }
}

enum { LONG_STEPS = 1500, LONG_EXPERTS = 512 };

static uint32_t long_count(int64_t step, int expert)
{
    return (uint32_t)(step * 7919 + expert) * 2654435761u >> 12;
}

/* An array of 3 MiB, most of which is read on another thread. */
static bytes long_array(void)
{
    bytes array = {0};
    char header[128];
    int length = snprintf(header, sizeof(header),
                          "{'descr':'<u4','fortran_order':False,'shape':(%d,1,%d)}%*s", LONG_STEPS,
                          LONG_EXPERTS, 57, "\n");
    add_bytes(&array, "\x93NUMPY\x01\x00", 8);
    add_integer(&array, (uint64_t)length, 2);
    add_bytes(&array, header, (size_t)length);
    for (int step = 0; step < LONG_STEPS; step++) {
        for (int expert = 0; expert < LONG_EXPERTS; expert++) {
            add_integer(&array, long_count(step, expert), 4);
        }
    }
    return array;
}

static void compare_long_row(void *context, const eplb_counts_row *row)
{
    int *rows = context;
    assert_int_equal(row->step, *rows);
    assert_int_equal(row->length, LONG_EXPERTS);
    for (int expert = 0; expert < LONG_EXPERTS; expert++) {
        assert_true(row->counts[expert] == (double)long_count(row->step, expert));
    }
    ++*rows;
}

static void long_arrays_are_read_to_their_end(void **state)
{
    (void)state;
    for (int deflated = 0; deflated < 2; deflated++) {
        eplb_error error;
        int rows = 0;
        zip_part part = {.name = "long.npy", .content = long_array(), .deflated = deflated == 1};
        write_archive(&part, 1, SIZE_MAX);
        assert_ok(read_rows("f.npz", NULL, compare_long_row, &rows, &error), &error);
        assert_int_equal(rows, LONG_STEPS);
        test_each_failing_allocation(read_counts, "f.npz");
        part.crc_fault = 1;
        write_archive(&part, 1, SIZE_MAX);
        assert_status(read_rows("f.npz", NULL, NULL, NULL, &error), EPLB_ERROR_PARSE, &error);
        assert_string_equal(error.message,
                            "f.npz: zip archive: entry 'long.npy': its checksum is wrong");
        free(part.content.data);
    }
}

TEST_MAIN(INSIDE(stored_and_deflated_arrays_are_read), INSIDE(long_arrays_are_read_to_their_end),
          INSIDE(column_major_arrays_are_read), INSIDE(one_of_several_arrays_is_chosen_by_name),
          INSIDE(broken_entries_are_named), INSIDE(an_archive_that_was_cut_is_never_whole),
          INSIDE(an_archive_behind_another_is_refused), INSIDE(bytes_behind_an_archive_are_refused),
          INSIDE(a_wrong_byte_gives_no_other_counts),
          INSIDE(an_archive_that_is_packed_must_be_unpacked),
          INSIDE(each_failing_allocation_is_survived))

#else

static void a_build_without_minizip_says_so(void **state)
{
    (void)state;
    static const unsigned char header[35] = {
        'P', 'K', 3, 4, [26] = 5, [30] = 'a', '.', 'n', 'p', 'y'};
    eplb_error error;
    test_write_file("f.npz", header, sizeof(header));
    assert_status(read_rows("f.npz", NULL, NULL, NULL, &error), EPLB_ERROR_UNSUPPORTED, &error);
    assert_string_equal(error.message, "f.npz: a zip archive, and this build is without minizip");
}

TEST_MAIN(INSIDE(a_build_without_minizip_says_so))

#endif
