/* SPDX-License-Identifier: MIT */
/* Every allocation fails once: each time EPLB_ERROR_NOMEM, nothing live, no file. */
#include "maps.h"

static eplb_status read_load(const eplb_hooks *hooks, void *context)
{
    const char *const paths[] = {context, context};
    eplb_load *load;
    eplb_status status = load_summed(&load, hooks, paths, 2, NULL, NULL);
    assert_true((load != NULL) == (status == EPLB_OK));
    eplb_load_destroy(&load);
    return status;
}

static void reading_counts_survives_each_failure(void **state)
{
    (void)state;
    static const char *const names[] = {"format/counts.csv", "format/counts.jsonl",
                                        "format/steps.npy", "format/steps_fortran.npy",
                                        "format/sglang_logical_count.json"};
    for (int i = 0; i < 5; i++) {
        test_path path = test_data(names[i]);
        test_each_failing_allocation(read_counts, path.text);
        test_each_failing_allocation(read_load, path.text);
    }
}

/* Rows that outgrow their first buffer, so that growing fails, too. */
static void growing_a_row_survives_each_failure(void **state)
{
    test_path path = test_join(*state, "wide");
    FILE *file = fopen(path.text, "wb");
    assert_non_null(file);
    fprintf(file, "{\"layer\":0,\"counts\":[0");
    for (int e = 1; e < 1500; e++) {
        fprintf(file, ",%d", e);
    }
    fprintf(file, "]}\n");
    assert_int_equal(fclose(file), 0);
    test_each_failing_allocation(read_counts, path.text);
}

static eplb_status read_placement(const eplb_hooks *hooks, void *context)
{
    eplb_read_options options = options_for("");
    options.gpus = GPUS;
    eplb_placement *placement;
    eplb_status status = eplb_placement_read(&placement, hooks, context, &options, NULL, NULL);
    assert_true((placement != NULL) == (status == EPLB_OK));
    eplb_placement_destroy(&placement);
    return status;
}

static void reading_placements_survives_each_failure(void **state)
{
    (void)state;
    static const char *const names[] = {"format/sglang_placement.json",
                                        "format/ascend_expert_map.json",
                                        "format/trtllm_placement.yaml"};
#ifdef HAVE_YAML
    int count = 3;
#else
    int count = 2;
#endif
    for (int i = 0; i < count; i++) {
        test_path path = test_data(names[i]);
        test_each_failing_allocation(read_placement, path.text);
    }
}

typedef struct writing {
    const eplb_placement *placement;
    const eplb_format *format;
    const char *path;
} writing;

static eplb_status write_placement(const eplb_hooks *hooks, void *context)
{
    const writing *self = context;
    eplb_status status =
        eplb_placement_write(self->placement, hooks, self->path, self->format, NULL);
    assert_int_equal(access(self->path, F_OK) == 0, status == EPLB_OK);
    return status;
}

static void writing_survives_each_failure(void **state)
{
    static const char *const names[] = {"sglang", "ascend", "vllm", "trtllm"};
    eplb_placement *placement = make_recorded_placement();
    for (int i = 0; i < 4; i++) {
        test_path path = test_join(*state, names[i]);
        writing context = {placement, eplb_format_find(names[i]), path.text};
        test_each_failing_allocation(write_placement, &context);
    }
    eplb_placement_destroy(&placement);
}

TEST_MAIN(cmocka_unit_test(reading_counts_survives_each_failure),
          IN_DIRECTORY(growing_a_row_survives_each_failure),
          cmocka_unit_test(reading_placements_survives_each_failure),
          IN_DIRECTORY(writing_survives_each_failure))
