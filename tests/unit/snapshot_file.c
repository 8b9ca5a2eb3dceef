/* SPDX-License-Identifier: MIT */
/* Snapshots to bytes and back, and bytes that are none. */
#include "snapshot_file.h"

#include <sys/stat.h>

static void assert_same_snapshot(const eplb_snapshot *a, const eplb_snapshot *b)
{
    eplb_snapshot_info info = info_of(a);
    eplb_snapshot_info other = info_of(b);
    assert_memory_equal(&info, &other, sizeof(info));
    const char *name = eplb_snapshot_name(a);
    assert_true((name == NULL) == (eplb_snapshot_name(b) == NULL));
    if (name != NULL) {
        assert_string_equal(name, eplb_snapshot_name(b));
    }
    assert_memory_equal(eplb_snapshot_layer_ids(a), eplb_snapshot_layer_ids(b),
                        (size_t)info.layers * sizeof(int32_t));
    for (int32_t rank = 0; rank < info.ranks; rank++) {
        assert_int_equal(eplb_snapshot_has_rank(a, rank), eplb_snapshot_has_rank(b, rank));
    }
    for (int64_t i = info.first_bucket; i < info.first_bucket + info.buckets; i++) {
        assert_int_equal(eplb_snapshot_filled_steps(a, i), eplb_snapshot_filled_steps(b, i));
        for (int32_t l = 0; l < info.layers; l++) {
            assert_memory_equal(eplb_snapshot_row(a, i, l), eplb_snapshot_row(b, i, l),
                                (size_t)info.experts * sizeof(uint64_t));
        }
    }
}

static eplb_snapshot *unpack(packed p)
{
    eplb_snapshot *snapshot = NULL;
    eplb_error error;
    assert_ok(eplb_snapshot_unpack(&snapshot, NULL, p.bytes, p.size, &error), &error);
    return snapshot;
}

/* Frees the snapshot. */
static void assert_comes_back(eplb_snapshot *snapshot)
{
    packed there = pack(snapshot);
    eplb_snapshot *copy = unpack(there);
    packed again = pack(copy);
    assert_same_snapshot(copy, snapshot);
    assert_int_equal(there.size, again.size);
    assert_memory_equal(there.bytes, again.bytes, there.size);
    free(there.bytes);
    free(again.bytes);
    eplb_snapshot_destroy(&copy);
    eplb_snapshot_destroy(&snapshot);
}

static void all_that_a_snapshot_holds_comes_back(void **state)
{
    (void)state;
    eplb_snapshot *sample = make_sample();
    eplb_snapshot_info info = info_of(sample);
    assert_int_equal(info.first_bucket, SAMPLE_FIRST_BUCKET);
    assert_int_equal(info.steps, SAMPLE_STEPS);
    assert_int_equal(info.filled_steps, 3);
    assert_int_equal(info.dropped, 2);
    assert_row(sample, 2, 1, 9 + 1, 2000, 2 * (uint64_t)UINT32_MAX, 0, 5);
    assert_comes_back(sample);
}

static void snapshots_of_other_shapes_come_back(void **state)
{
    (void)state;
    static const struct {
        int32_t layers;
        int32_t experts;
        int32_t buckets;
        int32_t steps_per_bucket;
        int32_t ranks;
        int32_t steps;
        const char *name;
    } shapes[] = {
        {1, 1, 1, 1, 1, 0, NULL},       {1, 1, 1, 1, 1, 1, ""},
        {3, 7, 2, 5, 4, 11, "prefill"}, {4, 2, 5, 63, 3, 200, NULL},
        {2, 6, 3, 64, 5, 130, "d"},     {5, 3, 2, 65, 70, 129, "d\xc3\xa9j\xc3\xa0"},
        {2, 3, 4, 1000, 9, 2345, NULL}, {6, 300, 7, 2, 300, 100, "x"},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        eplb_window_options options = window_options(shapes[i].layers, shapes[i].experts);
        options.buckets = shapes[i].buckets;
        options.steps_per_bucket = shapes[i].steps_per_bucket;
        options.ranks = shapes[i].ranks;
        options.rank = shapes[i].ranks - 1;
        options.name = shapes[i].name;
        eplb_window *window = make_window(options);
        for (int32_t step = 0; step < shapes[i].steps; step++) {
            const int32_t ids[] = {step % shapes[i].experts, step % 3 - 1};
            assert_ok(eplb_window_begin_step(window, step % 7 == 3, NULL), NULL);
            assert_ok(eplb_recorder_topk(eplb_window_recorder(window, 0), step % shapes[i].layers,
                                         ids, 1, 2, NULL),
                      NULL);
        }
        assert_comes_back(take_snapshot(window));
        eplb_window_destroy(&window);
    }
}

static void emptied_window_comes_back(void **state)
{
    (void)state;
    eplb_window *window = make_window(sample_options(1));
    for (int step = 0; step < 5; step++) {
        begin_step(window);
    }
    eplb_window_reset(window);
    assert_comes_back(take_snapshot(window));
    begin_step(window);
    record(window, 0, (uint32_t[]){1, 2, 3, 4, 5});
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_int_equal(info_of(snapshot).first_bucket, 3);
    assert_comes_back(snapshot);
    eplb_window_destroy(&window);
}

/* The largest sums, and the latest steps. */
static void extreme_numbers_come_back(void **state)
{
    (void)state;
    packed p = pack_sample();
    set_number(p, AT_HEADER + 28, 8, INT64_MAX - SAMPLE_BUCKETS - 2 * EPLB_MAX_BUCKETS);
    set_number(p, AT_HEADER + 36, 8, INT64_MAX);
    for (size_t i = 0; i < SAMPLE_BUCKETS; i++) {
        set_number(p, AT_BUCKETS + i * SAMPLE_BUCKET_SIZE, 8,
                   (uint64_t)INT64_MAX - 2 * (SAMPLE_BUCKETS - i));
    }
    set_number(p, AT_BUCKETS + 16, 8, UINT64_MAX);
    set_number(p, AT_BUCKETS + 24, 8, UINT64_MAX);
    seal_sample(p);
    eplb_snapshot *snapshot = unpack(p);
    assert_int_equal(info_of(snapshot).steps, INT64_MAX);
    assert_true(info_of(snapshot).dropped == UINT64_MAX);
    assert_true(eplb_snapshot_row(snapshot, info_of(snapshot).first_bucket, 0)[0] == UINT64_MAX);
    packed again = pack(snapshot);
    assert_memory_equal(p.bytes, again.bytes, SAMPLE_SIZE);
    free(p.bytes);
    free(again.bytes);
    eplb_snapshot_destroy(&snapshot);
}

/* As ranks do that send their snapshots to each other. */
static void unpacked_snapshots_merge_and_load_as_their_originals(void **state)
{
    (void)state;
    packed p = pack_sample();
    eplb_snapshot *copy = unpack(p);
    eplb_snapshot *original = make_sample();
    int32_t missing[SAMPLE_RANKS];
    assert_int_equal(eplb_snapshot_missing_ranks(copy, missing, SAMPLE_RANKS), 2);
    assert_true(missing[0] == 0 && missing[1] == 1);
    merge_missing_ranks(copy);
    merge_missing_ranks(original);
    assert_same_snapshot(copy, original);
    eplb_error error;
    const eplb_snapshot *one = copy;
    eplb_load *load = NULL;
    assert_ok(eplb_snapshot_load(&load, NULL, &one, 1, NULL, &error), &error);
    assert_int_equal(eplb_load_scenarios(load), 2);
    assert_int_equal(eplb_load_model_layers(load), 12);
    assert_string_equal(eplb_load_scenario_name(load, 1), "decode bucket 4");
    assert_true(eplb_load_row(load, 1, 0)[0] == 4 * 8.0);
    eplb_load_destroy(&load);
    free(p.bytes);
    eplb_snapshot_destroy(&copy);
    eplb_snapshot_destroy(&original);
}

/* The bytes have room of their own, so that memory checkers see one read behind them. */
static eplb_status try_bytes(const uint8_t *bytes, size_t size, eplb_error *error)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    uint8_t *exact = malloc(size > 0 ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    eplb_snapshot *snapshot = NULL;
    eplb_status status = eplb_snapshot_unpack(&snapshot, &hooks, exact, size, error);
    free(exact);
    assert_true((status == EPLB_OK) == (snapshot != NULL));
    eplb_snapshot_destroy(&snapshot);
    assert_int_equal(memory.live, 0);
    return status;
}

/* The words for the part that the byte is in. */
static const char *part_of(size_t offset)
{
    static const char *const buckets[SAMPLE_BUCKETS] = {"bucket 2:", "bucket 3:", "bucket 4:"};
    return offset < 8            ? "not a snapshot"
           : offset < AT_HEADER  ? "version:"
           : offset < AT_LISTS   ? "header:"
           : offset < AT_BUCKETS ? "layers, ranks and name:"
                                 : buckets[(offset - AT_BUCKETS) / SAMPLE_BUCKET_SIZE];
}

static void each_byte_that_changed_is_found(void **state)
{
    (void)state;
    packed p = pack_sample();
    for (size_t i = 0; i < p.size; i++) {
        for (unsigned change = 1; change < 256; change++) {
            eplb_error error;
            p.bytes[i] ^= (uint8_t)change;
            assert_status(try_bytes(p.bytes, p.size, &error), EPLB_ERROR_PARSE, &error);
            assert_contains(error.message, "snapshot: byte ");
            assert_contains(error.message, part_of(i));
            p.bytes[i] ^= (uint8_t)change;
        }
    }
    assert_ok(try_bytes(p.bytes, p.size, NULL), NULL);
    free(p.bytes);
}

static void buckets_that_changed_places_are_found(void **state)
{
    (void)state;
    packed p = pack_sample();
    uint8_t bucket[SAMPLE_BUCKET_SIZE];
    memcpy(bucket, p.bytes + AT_BUCKETS, sizeof(bucket));
    memmove(p.bytes + AT_BUCKETS, p.bytes + AT_BUCKETS + sizeof(bucket), sizeof(bucket));
    memcpy(p.bytes + AT_BUCKETS + sizeof(bucket), bucket, sizeof(bucket));
    eplb_error error;
    assert_status(try_bytes(p.bytes, p.size, &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "bucket 2: bytes 95 to 198 give the checksum");
    free(p.bytes);
}

static void no_part_of_a_snapshot_is_a_snapshot(void **state)
{
    (void)state;
    packed p = pack_sample();
    for (size_t size = 0; size < p.size; size++) {
        eplb_error error;
        char place[80];
        snprintf(place, sizeof(place), "snapshot: byte %zu: the snapshot ends too early", size);
        assert_status(try_bytes(p.bytes, size, &error), EPLB_ERROR_PARSE, &error);
        assert_contains(error.message, place);
    }
    free(p.bytes);
}

static void bytes_behind_a_snapshot_are_refused(void **state)
{
    (void)state;
    packed p = pack_sample();
    uint8_t *longer = realloc(p.bytes, p.size + SAMPLE_BUCKET_SIZE);
    assert_non_null(longer);
    for (size_t extra = 1; extra <= SAMPLE_BUCKET_SIZE; extra++) {
        longer[p.size + extra - 1] = 0;
        eplb_error error;
        char place[80];
        snprintf(place, sizeof(place), "byte %d: %zu bytes behind", SAMPLE_SIZE, extra);
        assert_status(try_bytes(longer, p.size + extra, &error), EPLB_ERROR_PARSE, &error);
        assert_contains(error.message, place);
    }
    free(longer);
}

typedef struct forgery {
    int at;
    int size;
    uint64_t value;
    const char *message;
} forgery;

/* What a program could write that gets the checksums right. */
static const forgery forgeries[] = {
    {8, 4, 0, "byte 8: snapshot version 0"},
    {16, 4, 0, "byte 16: layers: 0 not in 1..65536"},
    {16, 4, 65537, "byte 16: layers: 65537 not in 1..65536"},
    {20, 4, 0, "byte 20: experts: 0 not in 1..65536"},
    {20, 4, UINT32_MAX, "byte 20: experts: 4294967295 not in 1..65536"},
    {24, 4, SAMPLE_RANKS, "byte 24: rank: 4 not in 0..3"},
    {24, 4, 1, "byte 81: taken on rank 1, but without its counts"},
    {28, 4, 0, "byte 28: ranks: 0 not in 1..65536"},
    {28, 4, 65537, "byte 28: ranks: 65537 not in 1..65536"},
    {32, 4, 0, "byte 32: steps per bucket: 0 not in 1..1048576"},
    {32, 4, 1048577, "byte 32: steps per bucket: 1048577 not in 1..1048576"},
    {36, 4, 1, "byte 36: model layers: 1 not in 2..65536"},
    {36, 4, 65537, "byte 36: model layers: 65537 not in 2..65536"},
    {36, 4, 9, "byte 76: row 1: layer id 9 not in 0..8"},
    {40, 4, 4097, "byte 40: buckets: 4097 not in 0..4096"},
    {40, 4, SAMPLE_BUCKETS - 1, "byte 311: 108 bytes behind the snapshot"},
    {44, 8, UINT64_MAX, "byte 44: first bucket: 18446744073709551615 not in 0..92233720368547"},
    {44, 8, 7, "byte 52: steps: 9 not in 10..9223372036854775807"},
    {52, 8, 4, "byte 52: steps: 4 not in 5..9223372036854775807"},
    {52, 8, UINT64_MAX, "byte 52: steps: 18446744073709551615 not in 5.."},
    {60, 8, 0, "byte 412: 7 bytes behind the snapshot"},
    {AT_LISTS, 4, 9, "byte 76: row 1: layer id 9 does not follow 9 in order"},
    {AT_LISTS, 4, UINT32_MAX, "byte 72: row 0: layer id 4294967295 not in 0..11"},
    {AT_HELD + 1, 1, 2, "byte 81: rank 1: 2 is neither 0 nor 1"},
    {AT_HELD + 2, 1, 0, "byte 82: taken on rank 2, but without its counts"},
    {AT_NAME + 2, 1, 0, "byte 84: a name of 7 bytes whose last is not its only NUL"},
    {AT_NAME + 6, 1, 'd', "byte 84: a name of 7 bytes whose last is not its only NUL"},
    {AT_BUCKETS, 8, 1, "byte 95: bucket 2: first step 1 not in 2..8"},
    {AT_BUCKETS, 8, SAMPLE_STEPS, "byte 95: bucket 2: first step 9 not in 2..8"},
    {AT_BUCKETS, 8, 3, "byte 203: bucket 3: first step 6, but 5 follows the last bucket"},
    {AT_BUCKETS + 8, 8, 4, "byte 95: bucket 2: counted steps behind the 2 that have begun"},
    {AT_BUCKETS + 8, 8, (uint64_t)1 << 63, "byte 95: bucket 2: counted steps behind the 2"},
    {AT_BUCKETS + 2 * SAMPLE_BUCKET_SIZE + 8, 8, 3,
     "byte 311: bucket 4: counted steps behind the 1 that have begun"},
    {AT_BUCKETS + 8, 8, 0, "byte 95: bucket 2: tokens, but no counted step"},
    {AT_BUCKETS + SAMPLE_BUCKET_SIZE + 16, 8, 1, "bucket 3: tokens, but no counted step"},
    {AT_BUCKETS + 2 * SAMPLE_BUCKET_SIZE - 12, 8, 1, "bucket 3: tokens, but no counted step"},
};

static void wrong_numbers_are_named_though_checksums_match(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
        const forgery *f = &forgeries[i];
        packed p = pack_sample();
        set_number(p, (size_t)f->at, (size_t)f->size, f->value);
        seal_sample(p);
        eplb_error error;
        assert_status(try_bytes(p.bytes, p.size, &error), EPLB_ERROR_PARSE, &error);
        assert_contains(error.message, f->message);
        free(p.bytes);
    }
}

/* One layer, one expert, one bucket of up to 100 steps, whose bitmap has two words. */
static packed pack_long_bucket(int steps)
{
    eplb_window_options options = window_options(1, 1);
    options.steps_per_bucket = 100;
    eplb_window *window = make_window(options);
    for (int step = 0; step < steps; step++) {
        begin_step(window);
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    packed p = pack(snapshot);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
    return p;
}

static void steps_that_have_not_begun_are_found_in_each_word(void **state)
{
    (void)state;
    const size_t at_bucket = AT_LISTS + 4 + 1 + 4;
    const struct {
        int steps;
        size_t word;
        uint64_t bits;
        eplb_status status;
    } cases[] = {
        {70, 0, UINT64_MAX, EPLB_OK},
        {70, 0, 0, EPLB_OK},
        {70, 1, 0x3f, EPLB_OK},
        {70, 1, 0x40, EPLB_ERROR_PARSE},
        {64, 1, 1, EPLB_ERROR_PARSE},
        {60, 0, (uint64_t)1 << 59, EPLB_OK},
        {60, 1, 1, EPLB_ERROR_PARSE},
        {60, 0, (uint64_t)1 << 60, EPLB_ERROR_PARSE},
        {100, 1, UINT64_MAX >> 28, EPLB_OK},
        {100, 1, (uint64_t)1 << 36, EPLB_ERROR_PARSE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        packed p = pack_long_bucket(cases[i].steps);
        assert_int_equal(p.size, at_bucket + 8 + 16 + 8 + 8 + 4);
        set_number(p, at_bucket + 8 + 8 * cases[i].word, 8, cases[i].bits);
        uint32_t crc = slow_crc32c(0, p.bytes, 12);
        crc = slow_crc32c(crc, p.bytes + AT_HEADER, AT_LISTS - 4 - AT_HEADER);
        crc = slow_crc32c(crc, p.bytes + AT_LISTS, at_bucket - 4 - AT_LISTS);
        crc = slow_crc32c(crc, p.bytes + at_bucket, p.size - 4 - at_bucket);
        set_number(p, p.size - 4, 4, crc);
        eplb_error error;
        assert_status(try_bytes(p.bytes, p.size, &error), cases[i].status, &error);
        free(p.bytes);
    }
}

static void later_version_is_not_supported(void **state)
{
    (void)state;
    packed p = pack_sample();
    set_number(p, 8, 4, 7);
    seal_sample(p);
    eplb_error error;
    assert_status(try_bytes(p.bytes, p.size, &error), EPLB_ERROR_UNSUPPORTED, &error);
    assert_contains(error.message, "byte 8: snapshot version 7: this library reads version 1");
    /* It may have any length. */
    assert_status(try_bytes(p.bytes, AT_HEADER, &error), EPLB_ERROR_UNSUPPORTED, &error);
    free(p.bytes);
}

/* The hooks of the test give no memory at all. */
static void sizes_that_are_not_there_take_no_memory(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        size_t size;
        uint64_t value;
    } sizes[] = {
        {16, 4, 65536},   {20, 4, 65536},      {28, 4, 65536},
        {32, 4, 1048576}, {60, 8, UINT64_MAX}, {60, 8, (uint64_t)1 << 60},
    };
    for (size_t i = 0; i <= sizeof(sizes) / sizeof(sizes[0]); i++) {
        packed p = pack_sample();
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            if (k == i || i == sizeof(sizes) / sizeof(sizes[0])) {
                set_number(p, sizes[k].at, sizes[k].size, sizes[k].value);
            }
        }
        set_number(p, 36, 4, 0);
        set_number(p, 40, 4, 4096);
        set_number(p, 52, 8, 1 << 20);
        seal_sample(p);
        test_memory memory = {.fail_at = 1};
        eplb_hooks hooks = test_hooks(&memory);
        eplb_snapshot *snapshot = NULL;
        eplb_error error;
        assert_status(eplb_snapshot_unpack(&snapshot, &hooks, p.bytes, p.size, &error),
                      EPLB_ERROR_PARSE, &error);
        assert_contains(error.message, "byte 419: the snapshot ends too early: at least ");
        assert_int_equal(memory.requests, 0);
        free(p.bytes);
    }
}

static void file_comes_back(void **state)
{
    test_path path = test_join(*state, "snapshot");
    eplb_snapshot *sample = make_sample();
    eplb_error error;
    assert_ok(eplb_snapshot_write(sample, NULL, path.text, &error), &error);
    packed p = pack_sample();
    size_t size;
    char *file = test_read_file(path.text, &size);
    assert_int_equal(size, p.size);
    assert_memory_equal(file, p.bytes, size);
    eplb_snapshot *read = NULL;
    assert_ok(eplb_snapshot_read(&read, NULL, path.text, -1, &error), &error);
    assert_same_snapshot(read, sample);
    eplb_snapshot_destroy(&read);
    eplb_snapshot_destroy(&sample);
    free(file);
    free(p.bytes);
}

/* More than the first piece that is read. */
static void large_file_comes_back(void **state)
{
    test_path path = test_join(*state, "snapshot");
    eplb_window_options options = window_options(7, 512);
    options.buckets = 9;
    options.steps_per_bucket = 1;
    eplb_window *window = make_window(options);
    for (int step = 0; step < 9; step++) {
        begin_step(window);
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    eplb_error error;
    assert_ok(eplb_snapshot_write(snapshot, NULL, path.text, &error), &error);
    eplb_snapshot *read = NULL;
    assert_ok(eplb_snapshot_read(&read, NULL, path.text, -1, &error), &error);
    assert_same_snapshot(read, snapshot);
    eplb_snapshot_destroy(&read);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void damaged_file_is_named(void **state)
{
    test_path path = test_join(*state, "snapshot");
    packed p = pack_sample();
    p.bytes[200] ^= 1;
    test_write_file(path.text, p.bytes, p.size);
    eplb_snapshot *read = NULL;
    eplb_error error;
    assert_status(eplb_snapshot_read(&read, NULL, path.text, -1, &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, path.text);
    assert_contains(error.message, ": byte 199: bucket 2: ");
    assert_null(read);
    test_write_file(path.text, "", 0);
    assert_status(eplb_snapshot_read(&read, NULL, path.text, -1, &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, ": byte 0: the snapshot ends too early");
    free(p.bytes);
}

static void file_above_the_limit_is_refused(void **state)
{
    test_path path = test_join(*state, "snapshot");
    packed p = pack_sample();
    test_write_file(path.text, p.bytes, p.size);
    free(p.bytes);
    eplb_snapshot *read = NULL;
    eplb_error error;
    assert_status(eplb_snapshot_read(&read, NULL, path.text, SAMPLE_SIZE - 1, &error),
                  EPLB_ERROR_LIMIT, &error);
    assert_contains(error.message, "snapshot: more than 418 bytes");
    assert_null(read);
    assert_ok(eplb_snapshot_read(&read, NULL, path.text, SAMPLE_SIZE, &error), &error);
    eplb_snapshot_destroy(&read);
}

static void file_that_cannot_be_opened_or_written_is_named(void **state)
{
    test_path path = test_join(*state, "snapshot");
    eplb_snapshot *read = NULL;
    eplb_error error;
    assert_status(eplb_snapshot_read(&read, NULL, path.text, -1, &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, "snapshot: cannot open: No such file");
    assert_status(eplb_snapshot_read(&read, NULL, *state, -1, &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, "cannot read: Is a directory");
    eplb_snapshot *sample = make_sample();
    assert_status(eplb_snapshot_write(sample, NULL, *state, &error), EPLB_ERROR_IO, &error);
    eplb_snapshot_destroy(&sample);
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    const eplb_status wrong = EPLB_ERROR_ARGUMENT;
    eplb_snapshot *sample = make_sample();
    eplb_snapshot *out = NULL;
    uint8_t *bytes = NULL;
    size_t size;
    eplb_error error;
    assert_status(eplb_snapshot_pack(NULL, NULL, &bytes, &size, &error), wrong, &error);
    assert_status(eplb_snapshot_pack(sample, NULL, NULL, &size, &error), wrong, &error);
    assert_status(eplb_snapshot_pack(sample, NULL, &bytes, NULL, &error), wrong, &error);
    assert_status(eplb_snapshot_unpack(NULL, NULL, (const uint8_t *)"", 0, &error), wrong, &error);
    assert_status(eplb_snapshot_unpack(&out, NULL, NULL, 0, &error), wrong, &error);
    assert_status(eplb_snapshot_write(NULL, NULL, "snapshot", &error), wrong, &error);
    assert_status(eplb_snapshot_write(sample, NULL, NULL, &error), wrong, &error);
    assert_status(eplb_snapshot_read(NULL, NULL, "snapshot", -1, &error), wrong, &error);
    assert_status(eplb_snapshot_read(&out, NULL, NULL, -1, &error), wrong, &error);
    assert_status(eplb_snapshot_read(&out, NULL, "snapshot", -2, &error), wrong, &error);
    assert_contains(error.message, "largest size -2 not in -1..");
    assert_true(bytes == NULL && out == NULL);
    eplb_snapshot_destroy(&sample);
}

static eplb_status write_and_read(const eplb_hooks *hooks, void *context)
{
    test_path path = test_join(context, "snapshot");
    eplb_snapshot *sample = make_sample();
    eplb_snapshot *read = NULL;
    eplb_status status = eplb_snapshot_write(sample, hooks, path.text, NULL);
    if (status == EPLB_OK) {
        status = eplb_snapshot_read(&read, hooks, path.text, -1, NULL);
    }
    assert_true((status == EPLB_OK) == (read != NULL));
    eplb_snapshot_destroy(&read);
    eplb_snapshot_destroy(&sample);
    return status;
}

static void failed_allocation_leaks_nothing(void **state)
{
    test_each_failing_allocation(write_and_read, *state);
}

TEST_MAIN(cmocka_unit_test(all_that_a_snapshot_holds_comes_back),
          cmocka_unit_test(snapshots_of_other_shapes_come_back),
          cmocka_unit_test(emptied_window_comes_back), cmocka_unit_test(extreme_numbers_come_back),
          cmocka_unit_test(unpacked_snapshots_merge_and_load_as_their_originals),
          cmocka_unit_test(each_byte_that_changed_is_found),
          cmocka_unit_test(buckets_that_changed_places_are_found),
          cmocka_unit_test(no_part_of_a_snapshot_is_a_snapshot),
          cmocka_unit_test(bytes_behind_a_snapshot_are_refused),
          cmocka_unit_test(wrong_numbers_are_named_though_checksums_match),
          cmocka_unit_test(steps_that_have_not_begun_are_found_in_each_word),
          cmocka_unit_test(later_version_is_not_supported),
          cmocka_unit_test(sizes_that_are_not_there_take_no_memory), IN_DIRECTORY(file_comes_back),
          IN_DIRECTORY(large_file_comes_back), IN_DIRECTORY(damaged_file_is_named),
          IN_DIRECTORY(file_above_the_limit_is_refused),
          IN_DIRECTORY(file_that_cannot_be_opened_or_written_is_named),
          cmocka_unit_test(missing_arguments_are_refused),
          IN_DIRECTORY(failed_allocation_leaks_nothing))
