/* SPDX-License-Identifier: MIT */
#include "planner/rename.h"

#include "base/memory.h"

/* GPUs are numbered as in the kind here: the planned ones, and those that hold experts now. */
typedef struct match {
    eplb_renaming *r;
    int32_t *first;  /* [experts + 2] in `holder` */
    int32_t *holder; /* GPUs that hold each expert, each once */
    int32_t *seen;   /* [experts] the last GPU that was seen to hold it */
    int32_t *shared; /* [count] zeros between searches */
    int32_t *most;   /* [count] what a planned GPU shared with its best free one when last seen */
    bool *is_placed; /* [count] planned ones */
    bool *is_taken;  /* [count] those that hold experts now */
} match;

/* Calls back with each expert that a GPU of the kind holds, once each; `mark` is new to `seen`. */
static void visit_held(match *m, int32_t gpu, int32_t mark,
                       void (*visit)(match *m, int32_t gpu, int32_t expert))
{
    int32_t slots;
    const int32_t *held = eplb_renaming_held(m->r, m->r->gpu[gpu], &slots);
    for (int32_t s = 0; s < slots; s++) {
        if (held[s] >= 0 && m->seen[held[s]] != mark) {
            m->seen[held[s]] = mark;
            visit(m, gpu, held[s]);
        }
    }
}

static void count_holder(match *m, int32_t gpu, int32_t expert)
{
    (void)gpu;
    m->first[expert + 2]++;
}

static void add_holder(match *m, int32_t gpu, int32_t expert)
{
    m->holder[m->first[expert + 1]++] = gpu;
}

/* Counting sort of what is held, by expert: an expert's place ends where the next one's begins. */
static void list_holders(match *m, int32_t experts)
{
    for (int32_t i = 0; i < m->r->count; i++) {
        visit_held(m, i, 1 + i, count_holder);
    }
    for (int32_t e = 0; e <= experts; e++) {
        m->first[e + 1] += m->first[e];
    }
    for (int32_t i = 0; i < m->r->count; i++) {
        visit_held(m, i, -1 - i, add_holder);
    }
}

/* The free GPU that shares most experts with a planned one, the first of several; -1: none does. */
static int32_t find_best(match *m, int32_t planned)
{
    const int32_t *experts = eplb_renaming_planned(m->r, m->r->gpu[planned]);
    for (int32_t s = 0; s < m->r->slots; s++) {
        for (int32_t k = m->first[experts[s]]; k < m->first[experts[s] + 1]; k++) {
            m->shared[m->holder[k]] += !m->is_taken[m->holder[k]];
        }
    }
    int32_t best = -1;
    m->most[planned] = 0;
    for (int32_t s = 0; s < m->r->slots; s++) {
        for (int32_t k = m->first[experts[s]]; k < m->first[experts[s] + 1]; k++) {
            int32_t i = m->holder[k];
            bool ties = m->shared[i] > 0 && m->shared[i] == m->most[planned] && i < best;
            if (m->shared[i] > m->most[planned] || ties) {
                best = i;
                m->most[planned] = m->shared[i];
            }
            m->shared[i] = 0;
        }
    }
    return best;
}

static void place(match *m, int32_t planned, int32_t gpu)
{
    m->r->source[gpu] = m->r->gpu[planned];
    m->is_placed[planned] = true;
    m->is_taken[gpu] = true;
}

/* What a planned GPU shares with its best free one only falls, so few are looked at again. */
static void place_all(match *m)
{
    for (int32_t level = m->r->slots; level > 0; level--) {
        for (int32_t p = 0; p < m->r->count; p++) {
            if (!m->is_placed[p] && m->most[p] >= level) {
                int32_t best = find_best(m, p);
                if (m->most[p] == level) {
                    place(m, p, best);
                }
            }
        }
    }
    int32_t free = 0;
    for (int32_t p = 0; p < m->r->count; p++) {
        while (free < m->r->count && m->is_taken[free]) {
            free++;
        }
        if (!m->is_placed[p]) {
            place(m, p, free);
        }
    }
}

static size_t all_held(const eplb_renaming *r)
{
    size_t all = 0;
    for (int32_t i = 0; i < r->count; i++) {
        int32_t slots;
        (void)eplb_renaming_held(r, r->gpu[i], &slots);
        all += (size_t)slots;
    }
    return all;
}

eplb_status eplb_renaming_match(eplb_renaming *r, eplb_error *error)
{
    const eplb_hooks *hooks = &r->job->hooks;
    int32_t experts = r->job->shape.experts;
    size_t count = (size_t)r->count;
    match m = {.r = r};
    const eplb_array arrays[] = {
        EPLB_ARRAY(m.first, (size_t)experts + 2),
        EPLB_ARRAY(m.holder, all_held(r)),
        EPLB_ARRAY(m.seen, (size_t)experts),
        EPLB_ARRAY(m.shared, count),
        EPLB_ARRAY(m.most, count),
        EPLB_ARRAY(m.is_placed, count),
        EPLB_ARRAY(m.is_taken, count),
    };
    size_t length = sizeof(arrays) / sizeof(arrays[0]);
    eplb_status status = eplb_alloc_arrays(hooks, arrays, length, error);
    if (status == EPLB_OK) {
        list_holders(&m, experts);
        for (int32_t p = 0; p < r->count; p++) {
            m.most[p] = r->slots;
        }
        place_all(&m);
    }
    for (size_t i = 0; i < length; i++) {
        eplb_free(hooks, *arrays[i].memory);
    }
    return status;
}
