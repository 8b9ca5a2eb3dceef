/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <eplb/price.h>
#include <eplb/rebalance.h>

static eplb_price_options defaults(void)
{
    eplb_price_options options;
    eplb_price_options_init(&options);
    return options;
}

static double price_of(const eplb_price_options *options, int32_t between_nodes)
{
    eplb_error error;
    double price = -1.0;
    assert_ok(eplb_copy_price(options, between_nodes, &price, &error), &error);
    return price;
}

static eplb_proposal proposal(const eplb_gpu_copies *copies, int32_t gpus, double before,
                              double after)
{
    return (eplb_proposal){.struct_size = sizeof(eplb_proposal),
                           .layers = 58,
                           .before = before,
                           .after = after,
                           .copies = copies,
                           .gpus = gpus};
}

static eplb_payoff judge(const eplb_price_options *options, const eplb_proposal *proposed)
{
    eplb_error error;
    eplb_payoff payoff = {.struct_size = sizeof(payoff)};
    assert_ok(eplb_payoff_judge(options, proposed, &payoff, &error), &error);
    return payoff;
}

static void default_price_is_that_of_rebalancing(void **state)
{
    (void)state;
    assert_close(price_of(NULL, 1), 44040192.0 / 50e9 / 0.0005 / 3000.0, 1e-15);
    assert_close(price_of(NULL, 1), EPLB_COPY_PRICE, 0.5e-4);
    assert_close(price_of(NULL, 0), 44040192.0 / 400e9 / 0.0005 / 3000.0, 1e-15);
}

static void copies_beside_steps_are_free(void **state)
{
    (void)state;
    eplb_price_options options = defaults();
    options.stall = 0.25;
    assert_close(price_of(&options, 1), price_of(NULL, 1) / 4.0, 1e-15);
    options.stall = 0.0;
    assert_true(price_of(&options, 1) == 0.0);
    const eplb_gpu_copies copies[2] = {{.received_inter = 3}, {.sent_inter = 3}};
    eplb_proposal proposed = proposal(copies, 2, 1.2, 1.1);
    eplb_payoff payoff = judge(&options, &proposed);
    assert_true(payoff.copy_seconds > 0.0 && payoff.stall_seconds == 0.0);
    assert_true(payoff.break_even_steps == 0.0 && payoff.break_even_seconds == 0.0);
    assert_int_equal(payoff.pays, 1);
    assert_string_equal(payoff.text, "3 copies (126 MiB, 2.64 ms beside steps) pay at once");
}

static void busiest_link_decides_the_copy_time(void **state)
{
    (void)state;
    eplb_price_options options = defaults();
    options.expert_bytes = 1000;
    options.intra_bandwidth = 4000.0;
    options.inter_bandwidth = 1000.0;
    const struct {
        eplb_gpu_copies copies[3];
        double seconds;
        int64_t received;
    } cases[] = {
        {{{.received_inter = 2}, {.sent_inter = 1}, {.sent_inter = 1}}, 2.0, 2},
        {{{.received_inter = 2}, {.received_inter = 1}, {.sent_inter = 3}}, 3.0, 3},
        {{{.received_intra = 8}, {.sent_intra = 8}, {0}}, 2.0, 8},
        {{{.received_intra = 8, .sent_inter = 3}, {.sent_intra = 8, .received_inter = 3}, {0}},
         3.0,
         11},
        {{{.received_inter = 5}, {0}, {0}}, 5.0, 5}, /* from storage */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_proposal proposed = proposal(cases[i].copies, 3, 1.2, 1.1);
        eplb_payoff payoff = judge(&options, &proposed);
        assert_close(payoff.copy_seconds, cases[i].seconds, 1e-12);
        assert_true(payoff.stall_seconds == payoff.copy_seconds);
        assert_int_equal(payoff.copies, cases[i].received);
        assert_int_equal(payoff.bytes, 1000 * cases[i].received);
    }
}

static void break_even_is_copy_time_over_gain(void **state)
{
    (void)state;
    const eplb_gpu_copies copies[2] = {{.received_inter = 14}, {.sent_inter = 14}};
    eplb_proposal proposed = proposal(copies, 2, 1.25, 1.05);
    eplb_price_options options = defaults();
    options.tokens_per_second = 1050.0;
    eplb_payoff payoff = judge(&options, &proposed);
    double gain = 0.0005 * 58.0 * 0.2;
    double cost = 14.0 * 44040192.0 / 50e9;
    assert_close(payoff.gain_seconds, gain, 1e-12);
    assert_close(payoff.stall_seconds, cost, 1e-12);
    assert_close(payoff.break_even_steps, cost / gain, 1e-9);
    assert_close(payoff.break_even_seconds, cost / gain * 0.0005 * 58.0 * 1.05, 1e-9);
    assert_close(payoff.tokens_gained, 200.0, 1e-9);
    assert_int_equal(payoff.pays, 1);
    assert_string_equal(payoff.text, "14 copies (588 MiB, 12.3 ms) pay after 3 steps; the next "
                                     "rebalance is after 3000");
}

static void what_pays_after_the_interval_does_not_pay(void **state)
{
    (void)state;
    const eplb_gpu_copies copies = {.received_inter = 1};
    eplb_proposal proposed = proposal(&copies, 1, 1.5, 1.25);
    eplb_price_options options = defaults();
    options.expert_bytes = 1024;
    options.inter_bandwidth = 1024.0;
    options.layer_seconds = 1.0 / 58.0; /* gain 0.25 s a step, 4 steps pay for 1 s */
    options.interval_steps = 4.5;
    assert_int_equal(judge(&options, &proposed).pays, 1);
    options.interval_steps = 3.5;
    eplb_payoff payoff = judge(&options, &proposed);
    assert_int_equal(payoff.pays, 0);
    assert_close(payoff.break_even_steps, 4.0, 1e-9);
    assert_contains(payoff.text, "1 copy (1 KiB, 1 s) pays after ");
    assert_contains(payoff.text, " steps, too late; the next rebalance is after 3.5");
}

static void copies_that_gain_nothing_never_pay(void **state)
{
    (void)state;
    const eplb_gpu_copies copies = {.received_inter = 2};
    for (int i = 0; i < 2; i++) {
        eplb_proposal proposed = proposal(&copies, 1, 1.1, i == 0 ? 1.1 : 1.2);
        eplb_payoff payoff = judge(NULL, &proposed);
        assert_int_equal(payoff.pays, 0);
        assert_true(isinf(payoff.break_even_steps) && isinf(payoff.break_even_seconds));
        assert_contains(payoff.text, "2 copies (84 MiB, 1.76 ms) gain nothing");
    }
    eplb_proposal unscored = proposal(&copies, 1, 0.0, 0.0);
    unscored.layers = 0;
    assert_int_equal(judge(NULL, &unscored).pays, 0);
}

static void nothing_to_copy_costs_nothing(void **state)
{
    (void)state;
    eplb_proposal proposed = proposal(NULL, 0, 1.1, 1.1);
    eplb_payoff payoff = judge(NULL, &proposed);
    assert_true(payoff.copies == 0 && payoff.bytes == 0 && payoff.copy_seconds == 0.0);
    assert_true(payoff.break_even_steps == 0.0 && payoff.pays == 1);
    assert_string_equal(payoff.text, "no copies");
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    static const double wrong[] = {0.0, -1.0, NAN, INFINITY, -INFINITY};
    static const size_t members[] = {offsetof(eplb_price_options, intra_bandwidth),
                                     offsetof(eplb_price_options, inter_bandwidth),
                                     offsetof(eplb_price_options, interval_steps),
                                     offsetof(eplb_price_options, layer_seconds),
                                     offsetof(eplb_price_options, tokens_per_second),
                                     offsetof(eplb_price_options, stall)};
    static const char *const names[] = {"intra_bandwidth", "inter_bandwidth",   "interval_steps",
                                        "layer_seconds",   "tokens_per_second", "stall"};
    for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++) {
        for (size_t i = m < 4 ? 0 : 1; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
            eplb_error error;
            eplb_price_options options = defaults();
            double price = 7.0;
            memcpy((char *)&options + members[m], &wrong[i], sizeof(wrong[i]));
            assert_status(eplb_copy_price(&options, 1, &price, &error), EPLB_ERROR_ARGUMENT,
                          &error);
            assert_contains(error.message, names[m]);
            assert_true(price == 7.0);
        }
    }
    eplb_error error;
    double price;
    eplb_price_options options = defaults();
    options.stall = 1.01;
    assert_status(eplb_copy_price(&options, 1, &price, &error), EPLB_ERROR_ARGUMENT, &error);
    options = defaults();
    options.expert_bytes = 0;
    assert_status(eplb_copy_price(&options, 1, &price, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "expert_bytes 0");
    options.struct_size = 0;
    assert_status(eplb_copy_price(&options, 1, &price, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_copy_price(NULL, 1, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
}

static void proposals_out_of_range_are_refused(void **state)
{
    (void)state;
    const eplb_gpu_copies copies[2] = {{.received_inter = 1}, {.sent_intra = -1}};
    eplb_proposal wrong[] = {proposal(copies, 2, 1.2, 1.1),  proposal(NULL, 1, 1.2, 1.1),
                             proposal(copies, -1, 1.2, 1.1), proposal(copies, 1, NAN, 1.1),
                             proposal(copies, 1, 1.2, -1.0), proposal(copies, 1, 1.2, 1.1),
                             proposal(copies, 1, 1.2, 1.1),  proposal(copies, 1, 1.2, INFINITY)};
    wrong[5].layers = -1;
    wrong[6].struct_size = 0;
    static const char *const messages[] = {"GPU 1",    "no copies",          "gpus -1",
                                           "before",   "imbalance after -1", "layers -1",
                                           "proposal", "imbalance after inf"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        eplb_error error;
        eplb_payoff payoff = {.struct_size = sizeof(payoff), .copies = 77};
        assert_status(eplb_payoff_judge(NULL, &wrong[i], &payoff, &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_contains(error.message, messages[i]);
        assert_int_equal(payoff.copies, 77);
    }
    eplb_error error;
    eplb_payoff unsized = {0};
    eplb_proposal good = proposal(copies, 1, 1.2, 1.1);
    assert_status(eplb_payoff_judge(NULL, &good, &unsized, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_payoff_judge(NULL, &good, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
}

static void seconds_keep_their_digits(void **state)
{
    (void)state;
    eplb_error error;
    eplb_price_options options = defaults();
    options.inter_bandwidth = (double)options.expert_bytes / 999.6;
    const eplb_gpu_copies copies = {.received_inter = 1};
    eplb_proposal proposed = proposal(&copies, 1, 1.2, 1.1);
    eplb_payoff payoff = {.struct_size = sizeof(payoff)};
    assert_ok(eplb_payoff_judge(&options, &proposed, &payoff, &error), &error);
    assert_non_null(strstr(payoff.text, ", 1000 s) "));
}

static void what_does_not_fit_is_an_overflow(void **state)
{
    (void)state;
    eplb_error error;
    double price;
    eplb_payoff payoff = {.struct_size = sizeof(payoff)};
    eplb_price_options options = defaults();
    options.inter_bandwidth = 1e-300;
    options.layer_seconds = 1e-300;
    assert_status(eplb_copy_price(&options, 1, &price, &error), EPLB_ERROR_OVERFLOW, &error);
    const eplb_gpu_copies many[2] = {{.received_inter = INT64_MAX}, {.received_intra = 1}};
    eplb_proposal proposed = proposal(many, 2, 1.2, 1.1);
    assert_status(eplb_payoff_judge(NULL, &proposed, &payoff, &error), EPLB_ERROR_OVERFLOW, &error);
    proposed.gpus = 1; /* the number fits, the bytes do not */
    assert_status(eplb_payoff_judge(NULL, &proposed, &payoff, &error), EPLB_ERROR_OVERFLOW, &error);
    const eplb_gpu_copies one = {.received_inter = 1};
    proposed = proposal(&one, 1, 1.2, 1.1);
    assert_status(eplb_payoff_judge(&options, &proposed, &payoff, &error), EPLB_ERROR_OVERFLOW,
                  &error);
    assert_int_equal(payoff.copies, 0);
}

static void older_structs_are_completed_and_cut(void **state)
{
    (void)state;
    eplb_price_options options = {.struct_size = offsetof(eplb_price_options, intra_bandwidth),
                                  .expert_bytes = 88080384,
                                  .stall = 0.0};
    assert_close(price_of(&options, 1), 2.0 * price_of(NULL, 1), 1e-15);
    const eplb_gpu_copies copies = {.received_inter = 1};
    eplb_proposal proposed = proposal(&copies, 1, 1.2, 1.1);
    eplb_error error;
    eplb_payoff payoff = {.struct_size = offsetof(eplb_payoff, bytes), .bytes = 77};
    assert_ok(eplb_payoff_judge(NULL, &proposed, &payoff, &error), &error);
    assert_true(payoff.copies == 1 && payoff.bytes == 77 && payoff.text[0] == '\0');
}

TEST_MAIN(cmocka_unit_test(default_price_is_that_of_rebalancing),
          cmocka_unit_test(copies_beside_steps_are_free),
          cmocka_unit_test(busiest_link_decides_the_copy_time),
          cmocka_unit_test(break_even_is_copy_time_over_gain),
          cmocka_unit_test(what_pays_after_the_interval_does_not_pay),
          cmocka_unit_test(copies_that_gain_nothing_never_pay),
          cmocka_unit_test(nothing_to_copy_costs_nothing),
          cmocka_unit_test(options_out_of_range_are_refused),
          cmocka_unit_test(proposals_out_of_range_are_refused),
          cmocka_unit_test(seconds_keep_their_digits),
          cmocka_unit_test(what_does_not_fit_is_an_overflow),
          cmocka_unit_test(older_structs_are_completed_and_cut))
