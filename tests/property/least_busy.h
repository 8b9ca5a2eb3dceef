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
    bool seen[MOST_SENT + 1][MOST_GPUS]; /* rounds, and the last for all of them */
} senders;

static bool free_gpu(senders *s, int32_t gpu);

/* Finds another GPU for a copy, which gives up the one it has. */
static bool send_elsewhere(senders *s, int32_t copy)
{
    sent_copy *c = &s->copies[copy];
    for (int32_t g = 0; g < MOST_GPUS; g++) {
        if (!c->may_send[g] || g == s->chosen[copy] || s->seen[c->round][g]) {
            continue;
        }
        s->seen[c->round][g] = true;
        bool is_free = false;
        if (s->most_in_round >= 0 && s->in_round[c->round][g] >= s->most_in_round) {
            for (int32_t other = 0; other < s->count && !is_free; other++) {
                is_free = s->chosen[other] == g && s->copies[other].round == c->round &&
                          send_elsewhere(s, other);
            }
        } else {
            is_free = s->in_all[g] < s->most || free_gpu(s, g);
        }
        if (is_free) {
            if (s->chosen[copy] >= 0) {
                s->in_round[c->round][s->chosen[copy]]--;
                s->in_all[s->chosen[copy]]--;
            }
            s->chosen[copy] = g;
            s->in_round[c->round][g]++;
            s->in_all[g]++;
            return true;
        }
    }
    return false;
}

/* Sends one of a GPU's copies, of any round, from elsewhere. */
static bool free_gpu(senders *s, int32_t gpu)
{
    if (s->seen[MOST_SENT][gpu]) {
        return false;
    }
    s->seen[MOST_SENT][gpu] = true;
    for (int32_t c = 0; c < s->count; c++) {
        if (s->chosen[c] == gpu && send_elsewhere(s, c)) {
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
