/* SPDX-License-Identifier: MIT */
/* The least that the busiest sender can send, by flows: copy -> GPU in its round -> GPU. */
#ifndef EPLB_TESTS_LEAST_BUSY_H
#define EPLB_TESTS_LEAST_BUSY_H

#include "../instance.h"

enum { MOST_SENT = 4 * MOST_SLOTS };

typedef struct sent_copy {
    int32_t round;            /* of the layer */
    int32_t gpu;              /* that sends */
    bool may_send[MOST_GPUS]; /* that hold the expert while the round runs, equally near */
} sent_copy;

typedef struct senders {
    int32_t count;
    sent_copy copies[MOST_SENT];
    int32_t most_in_round; /* -1: no limit */
    /* The flow that is being built: */
    int32_t most;
    int32_t chosen[MOST_SENT];              /* GPU of each copy, or -1 */
    int32_t in_round[MOST_SENT][MOST_GPUS]; /* copies of each round and GPU */
    int32_t in_all[MOST_GPUS];
    bool seen[MOST_SENT][MOST_GPUS]; /* by the search: places in rounds */
    bool seen_gpu[MOST_GPUS];
} senders;

static bool send_elsewhere(senders *s, int32_t copy);

/* Sends one of a GPU's copies of one round from elsewhere. */
static bool displace(senders *s, int32_t round, int32_t gpu)
{
    for (int32_t c = 0; c < s->count; c++) {
        if (s->chosen[c] == gpu && s->copies[c].round == round && send_elsewhere(s, c)) {
            return true;
        }
    }
    return false;
}

/* Sends one of a GPU's copies of any round from elsewhere. */
static bool free_gpu(senders *s, int32_t gpu)
{
    for (int32_t r = 0; r < MOST_SENT && !s->seen_gpu[gpu]; r++) {
        if (!s->seen[r][gpu]) {
            s->seen[r][gpu] = true;
            if (displace(s, r, gpu)) {
                return true;
            }
        }
    }
    s->seen_gpu[gpu] = true;
    return false;
}

/* Finds another GPU for a copy, which gives up the one it has. */
static bool send_elsewhere(senders *s, int32_t copy)
{
    int32_t round = s->copies[copy].round;
    for (int32_t g = 0; g < MOST_GPUS; g++) {
        if (!s->copies[copy].may_send[g] || s->seen[round][g]) {
            continue;
        }
        s->seen[round][g] = true;
        bool is_full = s->most_in_round >= 0 && s->in_round[round][g] >= s->most_in_round;
        if ((!is_full && s->in_all[g] < s->most) || displace(s, round, g) ||
            (!is_full && free_gpu(s, g))) {
            if (s->chosen[copy] >= 0) {
                s->in_round[round][s->chosen[copy]]--;
                s->in_all[s->chosen[copy]]--;
            }
            s->chosen[copy] = g;
            s->in_round[round][g]++;
            s->in_all[g]++;
            return true;
        }
    }
    return false;
}

static bool can_send(senders *s, int32_t most)
{
    s->most = most;
    memset(s->in_round, 0, sizeof(s->in_round));
    memset(s->in_all, 0, sizeof(s->in_all));
    for (int32_t c = 0; c < s->count; c++) {
        s->chosen[c] = -1;
    }
    for (int32_t c = 0; c < s->count; c++) {
        memset(s->seen, 0, sizeof(s->seen));
        memset(s->seen_gpu, 0, sizeof(s->seen_gpu));
        if (!send_elsewhere(s, c)) {
            return false;
        }
    }
    return true;
}

static int32_t least_busy(senders *s)
{
    int32_t most = 0;
    while (!can_send(s, most)) {
        most++;
    }
    return most;
}

static int32_t busiest(const senders *s)
{
    int32_t sent[MOST_GPUS] = {0};
    int32_t most = 0;
    for (int32_t c = 0; c < s->count; c++) {
        int32_t count = ++sent[s->copies[c].gpu];
        most = count > most ? count : most;
    }
    return most;
}

#endif
