/* SPDX-License-Identifier: MIT */
/* A placement of the format FUZZ_FORMAT. What is valid and can be written reads back the same. */
#include <stdlib.h>
#include <string.h>

#include <eplb/cluster.h>
#include <eplb/format.h>

#include "fuzz.h"

/* More than the corpus needs; a file with more is refused, compressed ones too. */
#define LARGEST_MAP (256 << 10)

static eplb_placement *read_map(const uint8_t *data, size_t size, int32_t gpus)
{
    eplb_hooks hooks = fuzz_hooks(fuzz_worth(data, size), 1);
    eplb_read_options options;
    eplb_read_options_init(&options);
    options.format = eplb_format_find(FUZZ_FORMAT);
    options.gpus = gpus;
    options.max_bytes = LARGEST_MAP;
    eplb_placement *placement;
    eplb_error error;
    eplb_status status =
        eplb_placement_read(&placement, &hooks, fuzz_file(data, size), &options, NULL, &error);
    if (status != EPLB_OK) {
        fuzz_expect_message(status, &error);
        fuzz_expect_nothing_live();
        return NULL;
    }
    if (placement == NULL) {
        fuzz_fail("no placement, and no error");
    }
    return placement;
}

static void expect_experts(const eplb_placement *placement)
{
    int32_t slots = eplb_placement_slots(placement);
    int32_t experts = eplb_placement_experts(placement);
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        const int32_t *row = eplb_placement_row(placement, l);
        for (int32_t s = 0; s < slots; s++) {
            if (row[s] < -1 || row[s] >= experts) {
                fuzz_fail("layer %d, slot %d: expert %d of %d", l, s, row[s], experts);
            }
        }
    }
}

static char *write_valid(const eplb_placement *placement, size_t *length)
{
    const eplb_format *format = eplb_format_find(FUZZ_FORMAT);
    eplb_error error;
    char *text = NULL;
    if ((eplb_format_flags(format) & EPLB_FORMAT_WRITES_PLACEMENT) == 0) {
        return NULL;
    }
    eplb_status valid = eplb_placement_validate(placement, 0, &error);
    eplb_status status = eplb_placement_format(placement, NULL, format, &text, length, &error);
    if (status != EPLB_OK) {
        fuzz_expect_message(status, &error);
        return NULL;
    }
    if (valid != EPLB_OK) {
        fuzz_fail("written, although %s", error.message);
    }
    return text;
}

static void expect_same(const eplb_placement *a, const eplb_placement *b)
{
    int32_t layers = eplb_placement_layers(a);
    int32_t slots = eplb_placement_slots(a);
    if (eplb_placement_layers(b) != layers || eplb_placement_slots(b) != slots) {
        fuzz_fail("%d layers of %d slots read back as %d of %d", layers, slots,
                  eplb_placement_layers(b), eplb_placement_slots(b));
    }
    if (eplb_placement_draft_layers(a) != eplb_placement_draft_layers(b)) {
        fuzz_fail("%d layers of the draft model read back as %d", eplb_placement_draft_layers(a),
                  eplb_placement_draft_layers(b));
    }
    for (int32_t l = 0; l < layers; l++) {
        if (memcmp(eplb_placement_row(a, l), eplb_placement_row(b, l),
                   (size_t)slots * sizeof(int32_t)) != 0) {
            fuzz_fail("layer %d reads back as another", l);
        }
    }
}

static void run(const uint8_t *data, size_t size, int32_t gpus)
{
    eplb_placement *placement = read_map(data, size, gpus);
    if (placement == NULL) {
        return;
    }
    expect_experts(placement);
    size_t length;
    char *text = write_valid(placement, &length);
    int32_t known = eplb_cluster_gpus(eplb_placement_cluster(placement));
    eplb_placement_destroy(&placement);
    fuzz_expect_nothing_live();
    if (text == NULL || length > LARGEST_MAP) {
        free(text);
        return;
    }
    placement = read_map(data, size, gpus);
    eplb_placement *again = read_map((const uint8_t *)text, length, known);
    if (placement == NULL || again == NULL) {
        fuzz_fail("what was written is not read");
    }
    expect_same(placement, again);
    eplb_placement_destroy(&placement);
    eplb_placement_destroy(&again);
    free(text);
}

/* Some formats do not say how many GPUs there are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run(data, size, 0);
    run(data, size, 4);
    return 0;
}
