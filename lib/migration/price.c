/* SPDX-License-Identifier: MIT */
#include <eplb/price.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/range.h"
#include "migration/price.h"

void eplb_price_options_init(eplb_price_options *options)
{
    if (options == NULL) {
        return;
    }
    *options = (eplb_price_options){.struct_size = sizeof(*options),
                                    .expert_bytes = INT64_C(44040192),
                                    .intra_bandwidth = 400e9,
                                    .inter_bandwidth = 50e9,
                                    .stall = 1.0,
                                    .interval_steps = 3000.0,
                                    .layer_seconds = 0.0005};
}

/* Finite, and above 0 or, where `may_be_zero`, at least that. NaN is neither. */
static eplb_status check_number(const char *name, double value, bool may_be_zero, eplb_error *error)
{
    if (isfinite(value) && (value > 0.0 || (may_be_zero && value == 0.0))) {
        return EPLB_OK;
    }
    return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "price: %s %g is not a finite number %s 0",
                          name, value, may_be_zero ? ">=" : ">");
}

static eplb_status check_options(const eplb_price_options *o, eplb_error *error)
{
    const struct {
        const char *name;
        double value;
        bool may_be_zero;
    } numbers[] = {
        {"intra_bandwidth", o->intra_bandwidth, false},
        {"inter_bandwidth", o->inter_bandwidth, false},
        {"interval_steps", o->interval_steps, false},
        {"layer_seconds", o->layer_seconds, false},
        {"tokens_per_second", o->tokens_per_second, true},
    };
    eplb_status status = EPLB_OK;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && status == EPLB_OK; i++) {
        status = check_number(numbers[i].name, numbers[i].value, numbers[i].may_be_zero, error);
    }
    if (status == EPLB_OK && !(o->stall >= 0.0 && o->stall <= 1.0)) {
        status =
            eplb_error_set(error, EPLB_ERROR_ARGUMENT, "price: stall %g not in 0..1", o->stall);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range("price", "expert_bytes", o->expert_bytes, 1, INT64_MAX, error);
    }
    return status == EPLB_OK ? eplb_check_range("price", "reserved", o->reserved, 0, 0, error)
                             : status;
}

static eplb_status complete_options(eplb_price_options *complete, const eplb_price_options *options,
                                    eplb_error *error)
{
    eplb_price_options_init(complete);
    if (options != NULL && !eplb_struct_in(complete, sizeof(*complete), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "price: options without struct_size: see eplb_price_options_init");
    }
    return check_options(complete, error);
}

eplb_status eplb_copy_price(const eplb_price_options *options, int32_t between_nodes, double *price,
                            eplb_error *error)
{
    eplb_price_options complete;
    eplb_status status = eplb_check_given("price", "output", price, error);
    if (status == EPLB_OK) {
        status = complete_options(&complete, options, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    double bandwidth = between_nodes != 0 ? complete.inter_bandwidth : complete.intra_bandwidth;
    double value = complete.stall * (double)complete.expert_bytes / bandwidth /
                   complete.layer_seconds / complete.interval_steps;
    if (!isfinite(value)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "price: that of a copy is not finite");
    }
    *price = value;
    return EPLB_OK;
}

static eplb_status check_proposal(const eplb_proposal *p, eplb_error *error)
{
    eplb_status status = eplb_check_range("price", "layers", p->layers, 0, INT32_MAX, error);
    if (status == EPLB_OK) {
        status = check_number("imbalance before", p->before, true, error);
    }
    if (status == EPLB_OK) {
        status = check_number("imbalance after", p->after, true, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range("price", "gpus", p->gpus, 0, INT32_MAX, error);
    }
    if (status == EPLB_OK && p->gpus > 0) {
        status = eplb_check_given("price", "copies", p->copies, error);
    }
    return status == EPLB_OK ? eplb_check_range("price", "reserved", p->reserved, 0, 0, error)
                             : status;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static eplb_status check_gpu(const eplb_gpu_copies *gpu, int32_t index, eplb_error *error)
{
    if (gpu->received_intra >= 0 && gpu->received_inter >= 0 && gpu->sent_intra >= 0 &&
        gpu->sent_inter >= 0) {
        return EPLB_OK;
    }
    return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                          "price: GPU %d: copies received %lld and %lld, sent %lld and %lld: "
                          "numbers are >= 0",
                          index, (long long)gpu->received_intra, (long long)gpu->received_inter,
                          (long long)gpu->sent_intra, (long long)gpu->sent_inter);
}

/* Adds up what is copied and finds the link that takes longest. */
static eplb_status cost(const eplb_price_options *o, const eplb_proposal *p, eplb_payoff *payoff,
                        eplb_error *error)
{
    bool overflows = false;
    double seconds = 0.0;
    for (int32_t g = 0; g < p->gpus; g++) {
        const eplb_gpu_copies *gpu = &p->copies[g];
        eplb_status status = check_gpu(gpu, g, error);
        if (status != EPLB_OK) {
            return status;
        }
        overflows |= __builtin_add_overflow(payoff->copies, gpu->received_intra, &payoff->copies);
        overflows |= __builtin_add_overflow(payoff->copies, gpu->received_inter, &payoff->copies);
        double intra = (double)larger(gpu->received_intra, gpu->sent_intra) / o->intra_bandwidth;
        double inter = (double)larger(gpu->received_inter, gpu->sent_inter) / o->inter_bandwidth;
        seconds = intra > seconds ? intra : seconds;
        seconds = inter > seconds ? inter : seconds;
    }
    if (overflows || __builtin_mul_overflow(payoff->copies, o->expert_bytes, &payoff->bytes)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "price: the bytes of all copies do not fit 64 bits");
    }
    payoff->copy_seconds = seconds * (double)o->expert_bytes;
    payoff->stall_seconds = o->stall * payoff->copy_seconds;
    return EPLB_OK;
}

/* What steps save, and when that has paid. */
static eplb_status gain(const eplb_price_options *o, const eplb_proposal *p, eplb_payoff *payoff,
                        eplb_error *error)
{
    double of_step = o->layer_seconds * (double)p->layers;
    double after = of_step * p->after;
    payoff->gain_seconds = of_step * (p->before - p->after);
    if (payoff->copies > 0 && payoff->gain_seconds <= 0.0) {
        payoff->break_even_steps = INFINITY;
        payoff->break_even_seconds = INFINITY;
    } else if (payoff->copies > 0) {
        payoff->break_even_steps = payoff->stall_seconds / payoff->gain_seconds;
        payoff->break_even_seconds = payoff->break_even_steps * after;
    }
    if (after > 0.0) {
        payoff->tokens_gained = o->tokens_per_second * (payoff->gain_seconds / after);
    }
    payoff->pays = payoff->break_even_steps <= o->interval_steps ? 1 : 0;
    bool is_finite = isfinite(after) && isfinite(payoff->copy_seconds) &&
                     isfinite(payoff->gain_seconds) && isfinite(payoff->tokens_gained) &&
                     (payoff->gain_seconds <= 0.0 || isfinite(payoff->break_even_seconds));
    return is_finite ? EPLB_OK
                     : eplb_error_set(error, EPLB_ERROR_OVERFLOW, "price: a time is not finite");
}

eplb_status eplb_payoff_judge(const eplb_price_options *options, const eplb_proposal *proposal,
                              eplb_payoff *payoff, eplb_error *error)
{
    eplb_proposal p = {.struct_size = sizeof(p)};
    eplb_price_options o;
    if (payoff == NULL || payoff->struct_size < sizeof(payoff->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "price: no payoff with a struct_size");
    }
    if (proposal == NULL || !eplb_struct_in(&p, sizeof(p), proposal)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "price: no proposal with a struct_size");
    }
    eplb_status status = complete_options(&o, options, error);
    if (status == EPLB_OK) {
        status = check_proposal(&p, error);
    }
    eplb_payoff judged = {.struct_size = sizeof(judged)};
    if (status == EPLB_OK) {
        status = cost(&o, &p, &judged, error);
    }
    if (status == EPLB_OK) {
        status = gain(&o, &p, &judged, error);
    }
    if (status == EPLB_OK) {
        eplb_payoff_describe(&judged, &o);
        eplb_struct_out(payoff, &judged, sizeof(judged));
    }
    return status;
}
