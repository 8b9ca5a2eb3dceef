/* SPDX-License-Identifier: MIT */
/* Which verdict follows from which numbers, and its words. */
#include "report_verdict.h"

#include "../support.h"

/* A layer of 8 GPUs that is worth a rebalance. */
static layer_facts uneven_layer(void)
{
    return (layer_facts){.steps = 100,
                         .gpus = 8,
                         .assignments = 512.0,
                         .tokens = 64.0,
                         .seen = 1.60,
                         .persistent = 1.42,
                         .standard_error = 0.02,
                         .dispersion = 1.0,
                         .padded = 3.0,
                         .padded_ratio = 2.5,
                         .planned = 1.06,
                         .hottest_expert = 3,
                         .hottest_ratio = 3.0,
                         .hottest_is_felt = true,
                         .spares = 2,
                         .spare = {{.slots = 2, .imbalance = 1.05, .bound = 1.0},
                                   {.slots = 8, .imbalance = 1.01, .bound = 1.0}}};
}

/* The same with one slot a GPU, so that no other placement helps. */
static layer_facts stuck_layer(void)
{
    layer_facts facts = uneven_layer();
    facts.planned = 1.42;
    return facts;
}

static void assert_kind(const layer_facts *facts, verdict_kind kind, bool certain)
{
    verdict judged = judge(facts);
    assert_string_equal(verdict_name(judged.kind), verdict_name(kind));
    assert_int_equal(judged.certain, certain);
}

static void assert_words(const layer_facts *facts, const char *words)
{
    char text[512];
    verdict judged = judge(facts);
    assert_string_equal(verdict_words(facts, &judged, text, sizeof(text)), words);
}

static void a_placement_that_takes_most_is_a_rebalance(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    assert_kind(&facts, VERDICT_REBALANCE, true);
    assert_words(&facts, "1.60 = 1.42 persistent + 0.18 noise at 64 tokens a step; placement can "
                         "take 1.42 to 1.06; only a larger batch takes the rest");
}

static void what_a_placement_leaves_may_be_worth_spare_slots(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.planned = 1.20;
    facts.spare[0].imbalance = 1.11;
    assert_kind(&facts, VERDICT_REBALANCE, true);
    assert_words(&facts, "1.60 = 1.42 persistent + 0.18 noise at 64 tokens a step; placement can "
                         "take 1.42 to 1.20, with 8 spare slots to 1.01; only a larger batch takes "
                         "the rest");
}

static void parts_of_a_sum_add_up_as_printed(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.seen = 1.604;
    facts.persistent = 1.415;
    facts.tokens = 0.0;
    assert_words(&facts, "1.60 = 1.42 persistent + 0.18 noise at 512 assignments a step; placement "
                         "can take 1.42 to 1.06; only a larger batch takes the rest");
    facts.seen = 1.40;
    assert_words(&facts, "1.40 = 1.42 persistent - 0.02 noise at 512 assignments a step; placement "
                         "can take 1.42 to 1.06");
}

static void small_imbalance_and_padding_are_fine(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.seen = facts.persistent = 1.09;
    facts.padded = 1.9;
    assert_kind(&facts, VERDICT_FINE, true);
    assert_words(&facts, "mean imbalance 1.09 (< 1.1) and padding 1.9x (< 2x): look elsewhere");
    facts.padded = 2.0;
    assert_kind(&facts, VERDICT_MORE_TOKENS, true);
    assert_words(&facts, "rows padded 2.0x at 64 tokens a step, imbalance 1.09: more tokens a "
                         "step, no placement will help");
}

static void tenfold_padding_wants_more_tokens_whatever_the_imbalance(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.padded = 24.0;
    facts.padded_ratio = 20.0;
    assert_kind(&facts, VERDICT_MORE_TOKENS, true);
    assert_words(&facts, "rows padded 24.0x at 64 tokens a step, imbalance 1.60: more tokens a "
                         "step, no placement will help");
    facts.padded = 9.9;
    facts.padded_ratio = 9.9;
    assert_kind(&facts, VERDICT_REBALANCE, true);
}

static void padding_that_comes_from_one_gpu_is_not_hopeless(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.padded = 12.0;
    facts.padded_ratio = 4.0;
    assert_kind(&facts, VERDICT_REBALANCE, true);
}

static void tenfold_padding_that_an_even_placement_leaves_is_hopeless(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.padded = 200.0;
    facts.padded_ratio = 57.0;
    assert_kind(&facts, VERDICT_MORE_TOKENS, true);
}

static void a_hot_expert_that_no_placement_takes_down_is_replicated(void **state)
{
    (void)state;
    layer_facts facts = stuck_layer();
    assert_kind(&facts, VERDICT_REPLICATE, true);
    assert_int_equal(judge(&facts).spare, 0);
    assert_words(&facts,
                 "1.60 = 1.42 persistent + 0.18 noise at 64 tokens a step; expert 3 gets 3.0 times "
                 "its fair share and the slots there cannot take it down (1.42 after replanning); "
                 "replicate, spare slots can: 2 take it to 1.05, 8 to 1.01");
    facts.spare[0].imbalance = 1.30;
    assert_int_equal(judge(&facts).spare, 1);
}

static void an_expert_that_its_gpu_does_not_feel_is_not_named(void **state)
{
    (void)state;
    layer_facts facts = stuck_layer();
    facts.hottest_is_felt = false;
    assert_words(&facts,
                 "1.60 = 1.42 persistent + 0.18 noise at 64 tokens a step; the slots there cannot "
                 "take it down (1.42 after replanning); replicate, spare slots can: 2 take it to "
                 "1.05, 8 to 1.01");
    facts.hottest_is_felt = true;
    facts.hottest_ratio = 1.9;
    assert_kind(&facts, VERDICT_REPLICATE, true);
}

static void what_neither_takes_is_nothing_to_gain(void **state)
{
    (void)state;
    layer_facts facts = stuck_layer();
    facts.planned = 1.40;
    facts.spare[0].imbalance = facts.spare[1].imbalance = 1.39;
    assert_kind(&facts, VERDICT_NOTHING_TO_GAIN, true);
    assert_words(&facts,
                 "1.60 = 1.42 persistent + 0.18 noise at 64 tokens a step; no other placement can "
                 "take it (1.40 after replanning) and neither can spare slots (1.39 with 8)");
}

static void a_part_is_better_than_nothing(void **state)
{
    (void)state;
    layer_facts facts = stuck_layer();
    facts.spare[0].imbalance = facts.spare[1].imbalance = 1.34;
    assert_kind(&facts, VERDICT_REPLICATE, true);
    facts.planned = 1.36;
    assert_kind(&facts, VERDICT_REBALANCE, true);
}

static void noise_wants_more_tokens(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.persistent = 1.05;
    assert_kind(&facts, VERDICT_MORE_TOKENS, true);
    assert_words(&facts, "1.60 = 1.05 persistent + 0.55 noise at 64 tokens a step: more tokens a "
                         "step, no placement will help");
    facts.persistent = 1.12; /* in doubt, but noise is far more */
    assert_kind(&facts, VERDICT_MORE_TOKENS, true);
}

static void what_two_standard_errors_do_not_decide_is_too_short(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.seen = 1.20;
    facts.persistent = 1.13;
    assert_kind(&facts, VERDICT_TOO_SHORT, true);
    /* 10000 * 1.13 * 6.87 / 512, rounded up */
    assert_int_equal(judge(&facts).steps_needed, 152);
    assert_words(&facts, "1.20 seen, 1.13 +- 0.04 of it persistent (two standard errors): too "
                         "short to tell; about 152 steps like these are needed, 100 are there");
    facts.dispersion = 8.0;
    assert_int_equal(judge(&facts).steps_needed, 1213);
    facts.dispersion = 0.1; /* less than there are: what is seen of the error decides */
    assert_int_equal(judge(&facts).steps_needed, 400);
    facts.standard_error = 0.01; /* known: the threshold itself decides */
    assert_kind(&facts, VERDICT_REBALANCE, true);
    facts.persistent = 1.09;
    facts.seen = 1.11;
    assert_kind(&facts, VERDICT_MORE_TOKENS, true);
}

/* Else a model of such layers would have nothing to gain and be called fine. */
static void what_is_too_short_to_tell_may_be_something(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.seen = 1.30;
    facts.persistent = 1.0;
    facts.standard_error = 0.2;
    verdict judged = judge(&facts);
    assert_string_equal(verdict_name(judged.kind), "too_short");
    assert_true(verdict_gain(&facts, &judged) > 0.0);
}

static void a_single_step_is_in_doubt_until_it_is_large(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.steps = 1;
    facts.too_few_steps = true;
    facts.seen = facts.persistent = 1.60;
    facts.assignments = 1000.0;
    assert_kind(&facts, VERDICT_REBALANCE, false);
    assert_words(&facts, "1.60 in 1 step of 64 tokens, which cannot tell what lasts from noise; if "
                         "it lasts, placement can take 1.60 to 1.06");
    facts.assignments = 1e6;
    facts.tokens = 0.0;
    assert_kind(&facts, VERDICT_REBALANCE, true);
    /* 8 * sqrt(0.2 * 0.8 / 1e6), twice */
    assert_words(&facts, "1.60 persistent in one sum or step of 1000000 assignments (chance "
                         "explains +-0.006); placement can take 1.60 to 1.06");
    facts.assignments = 40.0;
    assert_kind(&facts, VERDICT_TOO_SHORT, false);
}

static void one_token_proves_nothing(void **state)
{
    (void)state;
    layer_facts facts = stuck_layer();
    facts.steps = 1;
    facts.too_few_steps = true;
    facts.assignments = 1.0;
    facts.seen = facts.persistent = 8.0; /* on one GPU of eight */
    verdict judged = judge(&facts);
    assert_false(judged.certain);
    assert_true(judged.error > 1.0);
}

static void no_tokens_are_no_verdict(void **state)
{
    (void)state;
    layer_facts facts = {.gpus = 8, .hottest_expert = -1};
    assert_kind(&facts, VERDICT_NO_LOAD, true);
    assert_words(&facts, "nothing was routed");
}

static void doubtful_fine_says_so(void **state)
{
    (void)state;
    layer_facts facts = uneven_layer();
    facts.steps = 2;
    facts.too_few_steps = true;
    facts.seen = facts.persistent = 1.05;
    facts.padded = 1.5;
    assert_kind(&facts, VERDICT_FINE, false);
    assert_words(&facts, "mean imbalance 1.05 (< 1.1) and padding 1.5x (< 2x): look elsewhere, if "
                         "it lasts: 2 steps cannot tell");
}

TEST_MAIN(cmocka_unit_test(a_placement_that_takes_most_is_a_rebalance),
          cmocka_unit_test(what_a_placement_leaves_may_be_worth_spare_slots),
          cmocka_unit_test(parts_of_a_sum_add_up_as_printed),
          cmocka_unit_test(small_imbalance_and_padding_are_fine),
          cmocka_unit_test(tenfold_padding_wants_more_tokens_whatever_the_imbalance),
          cmocka_unit_test(padding_that_comes_from_one_gpu_is_not_hopeless),
          cmocka_unit_test(tenfold_padding_that_an_even_placement_leaves_is_hopeless),
          cmocka_unit_test(a_hot_expert_that_no_placement_takes_down_is_replicated),
          cmocka_unit_test(an_expert_that_its_gpu_does_not_feel_is_not_named),
          cmocka_unit_test(what_neither_takes_is_nothing_to_gain),
          cmocka_unit_test(a_part_is_better_than_nothing),
          cmocka_unit_test(noise_wants_more_tokens),
          cmocka_unit_test(what_two_standard_errors_do_not_decide_is_too_short),
          cmocka_unit_test(what_is_too_short_to_tell_may_be_something),
          cmocka_unit_test(a_single_step_is_in_doubt_until_it_is_large),
          cmocka_unit_test(one_token_proves_nothing), cmocka_unit_test(no_tokens_are_no_verdict),
          cmocka_unit_test(doubtful_fine_says_so))
