/* SPDX-License-Identifier: MIT */
/* cJSON and libyaml take memory from malloc, not from hooks. Here each request of theirs fails
 * once, through a malloc of this program's own, and what they took is counted. */
#include "reading.h"

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

/* Reads with the given request failing; false when there was no such request. */
static bool read_with_failure(const char *path, int fail_at)
{
    eplb_read_options options = options_for("");
    options.gpus = 4;
    eplb_placement *placement;
    eplb_error error;
    heap.requests = heap.live = 0;
    heap.fail_at = fail_at;
    heap.active = true;
    eplb_status status = eplb_placement_read(&placement, NULL, path, &options, NULL, &error);
    eplb_placement_destroy(&placement);
    heap.active = false;
    bool failed = heap.requests >= fail_at;
    assert_int_equal(heap.live, 0);
    assert_status(status, failed ? EPLB_ERROR_NOMEM : EPLB_OK, &error);
    return failed;
}

static void assert_survives(const char *name)
{
    test_path path = test_data(name);
    int fail_at = 1;
    while (read_with_failure(path.text, fail_at)) {
        fail_at++;
    }
    assert_true(fail_at > 20); /* the codec's own requests are among them */
}

static void cjson_without_memory_is_no_parse_error(void **state)
{
    (void)state;
    assert_survives("format/sglang_placement.json");
    assert_survives("format/ascend_expert_map.json");
    assert_survives("format/vllm_initial_mapping.jsonl");
    assert_survives("format/fastdeploy_rearrange.json");
}

static void libyaml_without_memory_is_no_parse_error(void **state)
{
    (void)state;
#ifdef HAVE_YAML
    assert_survives("format/trtllm_placement.yaml");
#endif
}

TEST_MAIN(cmocka_unit_test(cjson_without_memory_is_no_parse_error),
          cmocka_unit_test(libyaml_without_memory_is_no_parse_error))
