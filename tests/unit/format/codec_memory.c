/* SPDX-License-Identifier: MIT */
/* cJSON, libyaml, libzstd and minizip take memory from malloc, not from hooks. Here each request of
 * theirs fails once, through a malloc of this program's own, and what they took is counted. */
#include "packing.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static struct {
    bool active;
    int requests;
    int fail_at;
    int live;
} heap;

/* Counts a request; true when it must fail. */
static bool refuses(void)
{
    return heap.active && ++heap.requests == heap.fail_at;
}

static void *count(void *block)
{
    heap.live += heap.active && block != NULL ? 1 : 0;
    return block;
}

void *malloc(size_t size)
{
    return refuses() ? NULL : count(__libc_malloc(size));
}

void *calloc(size_t items, size_t size)
{
    return refuses() ? NULL : count(__libc_calloc(items, size));
}

void *realloc(void *block, size_t size)
{
    if (refuses()) {
        return NULL;
    }
    void *moved = __libc_realloc(block, size);
    return block == NULL ? count(moved) : moved;
}

void free(void *block)
{
    heap.live -= heap.active && block != NULL ? 1 : 0;
    __libc_free(block);
}

static eplb_status read_placement(const eplb_hooks *hooks, void *context)
{
    eplb_read_options options = options_for("");
    options.gpus = 4;
    eplb_placement *placement;
    eplb_status status = eplb_placement_read(&placement, hooks, context, &options, NULL, NULL);
    eplb_placement_destroy(&placement);
    return status;
}

typedef eplb_status (*reader)(const eplb_hooks *hooks, void *context);

/* Reads with the given request failing; false when there was no such request. *unclear counts the
 * failures that are not told as one of memory. */
static bool read_with_failure(reader read, test_path *path, int fail_at, int *unclear)
{
    heap.requests = heap.live = 0;
    heap.fail_at = fail_at;
    heap.active = true;
    eplb_status status = read(NULL, path->text);
    heap.active = false;
    bool failed = heap.requests >= fail_at;
    assert_int_equal(heap.live, 0);
    assert_true(failed || status == EPLB_OK);
    *unclear += failed && status != EPLB_ERROR_NOMEM ? 1 : 0;
    return failed;
}

/* At least `fewest` requests, so that the codec's own are among them. */
static void assert_survives(reader read, test_path path, int fewest, int most_unclear)
{
    int fail_at = 1;
    int unclear = 0;
    while (read_with_failure(read, &path, fail_at, &unclear)) {
        fail_at++;
    }
    assert_true(fail_at > fewest);
    assert_true(unclear <= most_unclear);
}

static void cjson_without_memory_is_no_parse_error(void **state)
{
    (void)state;
    assert_survives(read_placement, test_data("format/sglang_placement.json"), 20, 0);
    assert_survives(read_placement, test_data("format/ascend_expert_map.json"), 20, 0);
}

static void libyaml_without_memory_is_no_parse_error(void **state)
{
    (void)state;
#ifdef HAVE_YAML
    assert_survives(read_placement, test_data("format/trtllm_placement.yaml"), 20, 0);
#endif
}

static void zlib_without_memory_is_no_parse_error(void **state)
{
    (void)state;
#ifdef HAVE_ZLIB
    test_path path = test_join(*state, "f");
    bytes plain = bytes_of_file(test_data("format/counts.jsonl").text);
    bytes packed = {0};
    add_gzip(&packed, plain.data, plain.size);
    test_write_file(path.text, packed.data, packed.size);
    assert_survives(read_counts, path, 8, 0);
    free(packed.data);
    free(plain.data);
#endif
}

static void libzstd_without_memory_is_no_parse_error(void **state)
{
    (void)state;
#ifdef HAVE_ZSTD
    test_path path = test_join(*state, "f");
    bytes plain = bytes_of_file(test_data("format/counts.jsonl").text);
    bytes packed = {0};
    add_zstd(&packed, plain.data, plain.size);
    test_write_file(path.text, packed.data, packed.size);
    assert_survives(read_counts, path, 8, 0);
    free(packed.data);
    free(plain.data);
#endif
}

/* Three requests of minizip look for the directory; without them it finds none, or only the older
 * one of two. */
static void minizip_without_memory_loses_none(void **state)
{
    (void)state;
#ifdef HAVE_ZIP
    test_path path = test_join(*state, "f");
    zip_part part = {.name = "steps.npy",
                     .content = bytes_of_file(test_data("format/steps.npy").text),
                     .deflated = true};
    bytes archive = zip_of(&part, 1);
    test_write_file(path.text, archive.data, archive.size);
    assert_survives(read_counts, path, 10, 3);
    free(archive.data);
    free(part.content.data);
#endif
}

TEST_MAIN(cmocka_unit_test(cjson_without_memory_is_no_parse_error),
          cmocka_unit_test(libyaml_without_memory_is_no_parse_error),
          IN_DIRECTORY(zlib_without_memory_is_no_parse_error),
          IN_DIRECTORY(libzstd_without_memory_is_no_parse_error),
          IN_DIRECTORY(minizip_without_memory_loses_none))
