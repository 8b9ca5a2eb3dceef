/* SPDX-License-Identifier: MIT */
#include "instance.h"

enum { SEEDS = 3000 };

static bool gpu_has(const eplb_placement *placement, int32_t gpu, int32_t expert)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    int32_t first = eplb_cluster_first_slot(cluster, gpu);
    for (int32_t s = first; s < first + eplb_cluster_gpu_slots(cluster, gpu); s++) {
        if (eplb_placement_row(placement, 0)[s] == expert) {
            return true;
        }
    }
    return false;
}

/* What is wrong with one slot by the words of the contract, looked up slot by slot; 0: nothing. */
static int32_t violation_of_slot(const eplb_placement *placement, int32_t slot)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    const int32_t *row = eplb_placement_row(placement, 0);
    int32_t gpu = gpu_of_slot(cluster, slot);
    if (!eplb_cluster_gpu_alive(cluster, gpu)) {
        return row[slot] >= 0 ? EPLB_VIOLATION_DEAD_GPU : 0;
    }
    if (row[slot] < 0) {
        return EPLB_VIOLATION_EMPTY_SLOT;
    }
    for (int32_t s = eplb_cluster_first_slot(cluster, gpu); s < slot; s++) {
        if (row[s] == row[slot]) {
            return EPLB_VIOLATION_DUPLICATE;
        }
    }
    return 0;
}

static bool is_missing(const eplb_placement *placement, int32_t expert)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        if (eplb_cluster_gpu_alive(cluster, g) && gpu_has(placement, g, expert)) {
            return false;
        }
    }
    return true;
}

typedef struct violations {
    int32_t slot_kind[MOST_SLOTS];
    bool missing[MOST_EXPERTS];
} violations;

static int keep(void *context, const eplb_violation *violation)
{
    violations *seen = context;
    assert_int_equal(violation->layer, 0);
    if (violation->kind == EPLB_VIOLATION_MISSING_EXPERT) {
        assert_false(seen->missing[violation->expert]);
        seen->missing[violation->expert] = true;
    } else {
        assert_int_equal(seen->slot_kind[violation->slot], 0);
        seen->slot_kind[violation->slot] = violation->kind;
    }
    return 0;
}

static void check_finds_what_a_search_finds(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_placement *placement = draw_placement(&random);
        violations seen = {0};
        int64_t count = 0;
        int64_t expected = 0;
        assert_ok(eplb_placement_check(placement, 0, keep, &seen, &count, NULL), NULL);
        for (int32_t s = 0; s < eplb_placement_slots(placement); s++) {
            assert_int_equal(seen.slot_kind[s], violation_of_slot(placement, s));
            expected += seen.slot_kind[s] != 0;
        }
        for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
            assert_int_equal(seen.missing[e], is_missing(placement, e));
            expected += seen.missing[e];
        }
        assert_int_equal(count, expected);
        eplb_placement_destroy(&placement);
    }
}

static bool every_expert_can_find_a_slot(const eplb_cluster *cluster, int32_t experts)
{
    bool fits = eplb_cluster_live_slots(cluster) >= experts;
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        fits = fits && (!eplb_cluster_gpu_alive(cluster, g) ||
                        eplb_cluster_gpu_slots(cluster, g) <= experts);
    }
    return fits;
}

static void spread_is_valid_exactly_when_the_slots_fit(void **state)
{
    (void)state;
    int fitting = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_placement *placement = draw_placement(&random);
        const eplb_cluster *cluster = eplb_placement_cluster(placement);
        bool fits = every_expert_can_find_a_slot(cluster, eplb_placement_experts(placement));
        assert_int_equal(eplb_placement_spread(placement, 0, NULL),
                         fits ? EPLB_OK : EPLB_ERROR_INFEASIBLE);
        assert_true(!fits || eplb_placement_validate(placement, 0, NULL) == EPLB_OK);
        fitting += fits;
        eplb_placement_destroy(&placement);
    }
    assert_in_range(fitting, SEEDS / 5, SEEDS * 4 / 5);
}

/* Puts something wrong into a slot of a valid row: nothing, or the expert of another slot of the
 * GPU, or anything at all on a dead GPU. Returns the kind, or 0 where the slot offers no way. */
static int32_t spoil(eplb_random *random, const eplb_placement *placement, int32_t *row,
                     int32_t slot)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    int32_t gpu = gpu_of_slot(cluster, slot);
    int32_t first = eplb_cluster_first_slot(cluster, gpu);
    int32_t other = first + draw(random, 0, eplb_cluster_gpu_slots(cluster, gpu) - 1);
    if (!eplb_cluster_gpu_alive(cluster, gpu)) {
        row[slot] = draw(random, 0, eplb_placement_experts(placement) - 1);
        return EPLB_VIOLATION_DEAD_GPU;
    }
    if (other == slot) {
        row[slot] = -1;
        return EPLB_VIOLATION_EMPTY_SLOT;
    }
    row[slot] = row[other];
    return EPLB_VIOLATION_DUPLICATE;
}

static void one_spoiled_slot_of_a_valid_placement_is_found(void **state)
{
    (void)state;
    int found[EPLB_VIOLATION_DEAD_GPU + 1] = {0};
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_placement *placement = draw_placement(&random);
        if (eplb_placement_spread(placement, 0, NULL) == EPLB_OK) {
            int32_t slots = eplb_placement_slots(placement);
            int32_t row[MOST_SLOTS];
            memcpy(row, eplb_placement_row(placement, 0), (size_t)slots * sizeof(*row));
            int32_t kind = spoil(&random, placement, row, draw(&random, 0, slots - 1));
            assert_ok(eplb_placement_set_row(placement, 0, row, NULL), NULL);
            assert_int_equal(eplb_placement_validate(placement, 0, NULL), EPLB_ERROR_DATA);
            found[kind]++;
        }
        eplb_placement_destroy(&placement);
    }
    assert_true(found[EPLB_VIOLATION_DUPLICATE] > 100);
    assert_true(found[EPLB_VIOLATION_EMPTY_SLOT] > 100);
    assert_true(found[EPLB_VIOLATION_DEAD_GPU] > 10);
}

static void copies_are_the_pairs_that_the_start_lacks(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_placement *from = draw_placement(&random);
        eplb_placement *to = NULL;
        assert_ok(eplb_placement_clone(&to, NULL, from, NULL), NULL);
        int32_t row[MOST_SLOTS];
        for (int32_t s = 0; s < eplb_placement_slots(to); s++) {
            row[s] = draw(&random, -1, eplb_placement_experts(to) - 1);
        }
        assert_ok(eplb_placement_set_row(to, 0, row, NULL), NULL);
        int64_t expected = 0;
        for (int32_t g = 0; g < eplb_cluster_gpus(eplb_placement_cluster(to)); g++) {
            for (int32_t e = 0; e < eplb_placement_experts(to); e++) {
                expected += gpu_has(to, g, e) && !gpu_has(from, g, e);
            }
        }
        int64_t copies = -1;
        assert_ok(eplb_placement_copies(from, to, 0, &copies, NULL), NULL);
        assert_int_equal(copies, expected);
        assert_ok(eplb_placement_copies(to, to, 0, &copies, NULL), NULL);
        assert_int_equal(copies, 0);
        eplb_placement_destroy(&from);
        eplb_placement_destroy(&to);
    }
}

TEST_MAIN(seeded_test(check_finds_what_a_search_finds),
          seeded_test(spread_is_valid_exactly_when_the_slots_fit),
          seeded_test(one_spoiled_slot_of_a_valid_placement_is_found),
          seeded_test(copies_are_the_pairs_that_the_start_lacks))
