/* SPDX-License-Identifier: MIT */
/*
 * Gain against cost: what copies of experts' weights take, what better balance saves in each step,
 * and after how many steps the one has paid for the other. All of it is a model with few numbers,
 * each of which can be measured:
 *
 * A layer's MoE part takes layer_seconds * imbalance in a step: every GPU waits for the busiest.
 * So a proposal that takes the layers from the imbalances b_l to a_l gains in every step
 *
 *     gain = layer_seconds * sum_l (b_l - a_l)    seconds.
 *
 * Copies run on all GPUs at once. A GPU sends and receives at the same time, and copies within its
 * node and those that leave it take different links, which do not hinder each other:
 *
 *     copy time = max over GPUs of max(sent, received) * expert_bytes / bandwidth, intra and inter
 *
 * and steps stand still for the share `stall` of it. The proposal has paid for itself after
 *
 *     break-even = stall * copy time / gain    steps,
 *
 * and pays when that is within the interval until the next rebalance.
 *
 * Threads: functions of their arguments, which any thread may call.
 */
#ifndef EPLB_PRICE_H
#define EPLB_PRICE_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/migration.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef struct eplb_price_options {
    uint32_t struct_size; /* sizeof(eplb_price_options), written by eplb_price_options_init */
    int32_t reserved;     /* 0 */

    /* Weights of one expert of one layer, >= 1 byte; default 44,040,192: 3 matrices of 7168 x 2048
     * in one byte each, as in DeepSeek-V3. */
    int64_t expert_bytes;

    /* Bytes per second that one GPU sends, and receives at the same time, > 0: from GPUs of its own
     * node, default 400e9, and from others, default 50e9. */
    double intra_bandwidth;
    double inter_bandwidth;

    double stall; /* share of the copy time that steps wait, 0 (copies run beside them) .. 1
                   * (default: they stand still) */
    double interval_steps;    /* until the next rebalance, > 0; default 3000, vLLM's */
    double layer_seconds;     /* that one layer's MoE part takes in a step at imbalance 1, > 0;
                               * default 0.0005 */
    double tokens_per_second; /* of the placement in force, >= 0; 0 (default): not known */
} eplb_price_options;

/* Writes the defaults. */
EPLB_API void eplb_price_options_init(eplb_price_options *options);

/*
 * Price of one copy in units of a layer's imbalance, for eplb_rebalance_options.copy_price: a copy
 * pays when it lowers the imbalance of its layer by more,
 *
 *     price = stall * expert_bytes / bandwidth / layer_seconds / interval_steps
 *
 * with the bandwidth between nodes, or within one where between_nodes is 0. As if all copies went
 * through one link, one after another: what many GPUs copy at once costs less. The defaults are
 * EPLB_COPY_PRICE to rounding. options: NULL for the defaults. Errors: EPLB_ERROR_ARGUMENT for
 * options out of range, EPLB_ERROR_OVERFLOW when the price is not finite.
 */
EPLB_API eplb_status eplb_copy_price(const eplb_price_options *options, int32_t between_nodes,
                                     double *price, eplb_error *error);

/* Copies of one GPU in all layers, each >= 0: by links within its node and to other nodes. What
 * comes from storage is received from another node, and nobody sends it. */
typedef struct eplb_gpu_copies {
    int64_t received_intra;
    int64_t received_inter;
    int64_t sent_intra;
    int64_t sent_inter;
} eplb_gpu_copies;

/* Counts who sends and who gets in all rounds of a schedule: copies [gpus] are replaced. Copies
 * inside a GPU cost nothing and do not count. EPLB_ERROR_ARGUMENT without a schedule or output. */
EPLB_API eplb_status eplb_gpu_copies_count(const eplb_migration *migration, eplb_gpu_copies *copies,
                                           eplb_error *error);

/* What is judged. */
typedef struct eplb_proposal {
    uint32_t struct_size; /* sizeof(eplb_proposal) */
    int32_t layers;       /* that have load, >= 0 */
    double before;        /* mean imbalance of these, finite, >= 0 */
    double after;
    const eplb_gpu_copies *copies; /* [gpus] */
    int32_t gpus;                  /* >= 0 */
    int32_t reserved;              /* 0 */
} eplb_proposal;

#define EPLB_PAYOFF_TEXT_SIZE 256

typedef struct eplb_payoff {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t pays;         /* 1: within the interval */
    int64_t copies;       /* received by all GPUs */
    int64_t bytes;
    double copy_seconds;       /* the copy time above */
    double stall_seconds;      /* of it, what steps wait */
    double gain_seconds;       /* in each step; below 0 where the proposal is worse */
    double break_even_steps;   /* 0 when steps do not wait, INFINITY when nothing is gained */
    double break_even_seconds; /* the MoE parts of these steps, under the proposal */
    double tokens_gained;      /* per second, if the MoE parts are all that takes time; 0 when
                                * tokens_per_second is not known */

    /* One line, such as "14 copies (588 MiB, 12 ms) pay after 240 steps; the next rebalance is
     * after 3000". */
    char text[EPLB_PAYOFF_TEXT_SIZE];
} eplb_payoff;

/*
 * Judges a proposal. options: NULL for the defaults. Errors: EPLB_ERROR_ARGUMENT for options or a
 * proposal out of range (the message names the GPU), EPLB_ERROR_OVERFLOW for more bytes than 64
 * bits hold or times that are not finite; the payoff is then unchanged.
 */
EPLB_API eplb_status eplb_payoff_judge(const eplb_price_options *options,
                                       const eplb_proposal *proposal, eplb_payoff *payoff,
                                       eplb_error *error);

/* "42 MiB", "80 GiB", "1.5 TiB", "17 B": four digits and the largest unit below the size, which is
 * >= 0. `text` holds `size` bytes; what does not fit is cut. Returns `text`. */
EPLB_API char *eplb_bytes_text(int64_t bytes, char *text, size_t size);

EPLB_END_DECLS

#endif
