/* SPDX-License-Identifier: MIT */
#include <eplb/format.h>

#include "support.h"

static void formats_come_in_a_fixed_order(void **state)
{
    (void)state;
    static const char *const names[] = {
        "sglang", "npy",        "npz",          "csv",        "jsonl",     "trtllm",
        "ascend", "vllm",       "vllm_mapping", "vllm_stats", "vllm_dump", "vllm_load",
        "omni",   "fastdeploy", "lmdeploy",     "mindie",     "snapshot"};
    size_t count = sizeof(names) / sizeof(names[0]);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(eplb_format_name(eplb_format_at(i)), names[i]);
        assert_ptr_equal(eplb_format_find(names[i]), eplb_format_at(i));
        assert_true(strlen(eplb_format_description(eplb_format_at(i))) > 0);
        assert_true(strlen(eplb_format_engine(eplb_format_at(i))) > 0);
        assert_true(strlen(eplb_format_recognised_by(eplb_format_at(i))) > 0);
        assert_true((eplb_format_flags(eplb_format_at(i)) & EPLB_FORMAT_OPEN) != 0 ||
                    eplb_format_change(eplb_format_at(i))[0] == '\0');
    }
    assert_null(eplb_format_at(count));
}

static void unknown_names_are_not_found(void **state)
{
    (void)state;
    assert_null(eplb_format_find("SGLang"));
    assert_null(eplb_format_find(""));
    assert_null(eplb_format_find(NULL));
}

static void flags_say_what_a_format_can_do(void **state)
{
    (void)state;
    const uint32_t counts = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_WRITES_COUNTS;
    const uint32_t placements = EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT;
#ifdef HAVE_YAML
    const uint32_t trtllm = placements;
#else
    const uint32_t trtllm = EPLB_FORMAT_WRITES_PLACEMENT;
#endif
    assert_int_equal(eplb_format_flags(eplb_format_find("sglang")),
                     counts | placements | EPLB_FORMAT_ALL_MODEL_LAYERS |
                         EPLB_FORMAT_MODEL_LAYER_IDS);
    assert_int_equal(eplb_format_flags(eplb_format_find("npy")), counts);
    assert_int_equal(eplb_format_flags(eplb_format_find("csv")),
                     counts | EPLB_FORMAT_ANY_LAYER_IDS);
    assert_int_equal(eplb_format_flags(eplb_format_find("jsonl")),
                     counts | EPLB_FORMAT_ANY_LAYER_IDS);
    assert_int_equal(eplb_format_flags(eplb_format_find("trtllm")),
                     EPLB_FORMAT_READS_COUNTS | trtllm | EPLB_FORMAT_MODEL_LAYER_IDS);
    assert_int_equal(eplb_format_flags(eplb_format_find("ascend")), placements);
    assert_int_equal(eplb_format_flags(eplb_format_find("vllm")), placements | EPLB_FORMAT_OPEN);
    assert_int_equal(eplb_format_flags(eplb_format_find("vllm_mapping")),
                     placements | EPLB_FORMAT_OPEN);
    static const char *const recordings[] = {"vllm_stats", "vllm_dump"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(eplb_format_flags(eplb_format_find(recordings[i])),
                         EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_OPEN);
    }
    assert_int_equal(eplb_format_flags(eplb_format_find("fastdeploy")),
                     EPLB_FORMAT_READS_COUNTS | placements);
    assert_int_equal(eplb_format_flags(eplb_format_find("lmdeploy")), EPLB_FORMAT_READS_COUNTS);
    assert_int_equal(eplb_format_flags(eplb_format_find("vllm_load")),
                     EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_OPEN);
    assert_int_equal(eplb_format_flags(eplb_format_find("omni")),
                     placements | EPLB_FORMAT_UNEVEN_SLOTS);
    assert_int_equal(eplb_format_flags(eplb_format_find("mindie")), EPLB_FORMAT_READS_COUNTS);
}

static void only_ascend_marks_layers_of_the_draft_model(void **state)
{
    (void)state;
    const eplb_format *format;
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        bool is_ascend = strcmp(eplb_format_name(format), "ascend") == 0;
        assert_int_equal(eplb_format_draft_layers(format), is_ascend ? 1 : 0);
    }
}

TEST_MAIN(cmocka_unit_test(only_ascend_marks_layers_of_the_draft_model),
          cmocka_unit_test(formats_come_in_a_fixed_order),
          cmocka_unit_test(unknown_names_are_not_found),
          cmocka_unit_test(flags_say_what_a_format_can_do))
