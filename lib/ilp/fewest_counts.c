/* SPDX-License-Identifier: MIT */
/* Replica counts of a small layer, one vector after another. */
#include "ilp/fewest_search.h"

#include "base/memory.h"

/* GPU by GPU and expert by expert the search goes one call deeper. */
#define MOST_PAIRS 1024

bool eplb_fewest_is_small(const eplb_fewest_layer *layer)
{
    return layer->experts <= EPLB_FEWEST_MOST_EXPERTS && layer->gpus <= EPLB_FEWEST_MOST_GPUS &&
           layer->experts * layer->gpus <= MOST_PAIRS;
}

eplb_status eplb_fewest_search_create(eplb_fewest_search **out, eplb_fewest_layer *layer,
                                      eplb_error *error)
{
    *out = NULL;
    eplb_fewest_search *s = eplb_alloc_zeroed(&layer->hooks, 1, sizeof(*s));
    if (s == NULL) {
        return eplb_out_of_memory(error);
    }
    s->layer = layer;
    size_t experts = (size_t)layer->experts;
    size_t levels = (size_t)layer->gpus + 1;
    size_t scenarios = (size_t)layer->scenarios;
    const eplb_array arrays[] = {
        EPLB_ARRAY(s->share, scenarios * experts),
        EPLB_ARRAY(s->smallest, scenarios * (experts + 1)),
        EPLB_ARRAY(s->largest, scenarios * (experts + 1)),
        EPLB_ARRAY(s->sorted, scenarios * experts),
        EPLB_ARRAY(s->later_homes, levels * experts),
        EPLB_ARRAY(s->worst, levels * scenarios),
        EPLB_ARRAY(s->rest, levels * scenarios),
        EPLB_ARRAY(s->cap, levels * scenarios),
        EPLB_ARRAY(s->floor, levels * scenarios),
        EPLB_ARRAY(s->sum, levels * (experts + 1) * scenarios),
        EPLB_ARRAY(s->chosen, (size_t)layer->slots),
    };
    eplb_status status =
        eplb_alloc_arrays(&layer->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    if (status != EPLB_OK) {
        eplb_fewest_search_destroy(&s);
    }
    *out = s;
    return status;
}

void eplb_fewest_search_destroy(eplb_fewest_search **search)
{
    eplb_fewest_search *s = *search;
    if (s != NULL) {
        const eplb_hooks *hooks = &s->layer->hooks;
        void *arrays[] = {s->share, s->smallest, s->largest, s->sorted, s->later_homes, s->worst,
                          s->rest,  s->cap,      s->floor,   s->sum,    s->chosen};
        for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
            eplb_free(hooks, arrays[i]);
        }
        eplb_free(hooks, s);
    }
    *search = NULL;
}

double eplb_fewest_cap(const eplb_fewest_search *s, const double *worst, int32_t scenario)
{
    const eplb_fewest_layer *layer = s->layer;
    if (!layer->by_mean) {
        return s->loose;
    }
    double mean = 0.0;
    for (int32_t k = 0; k < layer->scenarios; k++) {
        mean += layer->weight[k] * worst[k];
    }
    return worst[scenario] + (s->loose - mean) / layer->weight[scenario];
}

static void sort_by_load(eplb_fewest_search *s)
{
    for (int32_t e = 0; e < s->layer->experts; e++) {
        double load = eplb_fewest_peak(s->layer, e);
        int32_t i = e;
        for (; i > 0 && eplb_fewest_peak(s->layer, s->by_load[i - 1]) < load; i--) {
            s->by_load[i] = s->by_load[i - 1];
        }
        s->by_load[i] = e;
    }
}

/* Replicas that an expert needs so that its share alone is no more than a GPU may have; one more
 * than there are GPUs when that is never so. */
static int32_t fewest_replicas(const eplb_fewest_search *s, int32_t expert)
{
    const eplb_fewest_layer *layer = s->layer;
    int32_t count = 1;
    for (int32_t k = 0; k < layer->scenarios; k++) {
        double load = layer->load[(size_t)k * (size_t)layer->experts + (size_t)expert];
        double cap = eplb_fewest_cap(s, s->worst, k);
        while (count <= layer->gpus && load > cap * (double)count) {
            count++;
        }
    }
    return count;
}

/* Slots beyond the fewest replicas of all experts; below 0 when those do not fit. */
static int32_t prepare(eplb_fewest_search *s)
{
    const eplb_fewest_layer *layer = s->layer;
    int32_t spare = layer->slots;
    int32_t all_homes = 0;
    s->room[layer->experts] = 0;
    for (int32_t i = layer->experts - 1; i >= 0; i--) {
        int32_t e = s->by_load[i];
        s->fewest[e] = fewest_replicas(s, e);
        spare = s->fewest[e] > layer->gpus ? -layer->slots : spare - s->fewest[e];
        s->room[i] = s->room[i + 1] + layer->gpus - s->fewest[e];
        s->homes[e] = 0;
        for (int32_t g = 0; g < layer->gpus; g++) {
            s->homes[e] += (int32_t)(s->home[g] >> e & 1u);
        }
        all_homes += s->homes[e];
    }
    s->most_dropped = s->copies - (layer->slots - all_homes);
    return spare;
}

/* Counts of the experts from place i on, with `spare` slots beyond their fewest replicas. Replicas
 * beyond an expert's homes are copies; as many must be dropped elsewhere, but for empty slots. */
static eplb_fewest_end choose_counts(eplb_fewest_search *s, int32_t i, int32_t spare,
                                     int32_t gained, int32_t dropped)
{
    if (!eplb_fewest_spend(s->layer, 1)) {
        return EPLB_FEWEST_ENDED;
    }
    if (i == s->layer->experts) {
        return eplb_fewest_pack(s);
    }
    int32_t e = s->by_load[i];
    int32_t most = s->fewest[e] + spare;
    most = most < s->layer->gpus ? most : s->layer->gpus;
    for (int32_t count = s->fewest[e]; count <= most; count++) {
        int32_t more = count > s->homes[e] ? count - s->homes[e] : 0;
        int32_t fewer = count < s->homes[e] ? s->homes[e] - count : 0;
        int32_t rest = spare - (count - s->fewest[e]);
        if (gained + more > s->copies || dropped + fewer > s->most_dropped ||
            rest > s->room[i + 1]) {
            continue;
        }
        s->count[e] = count;
        eplb_fewest_end end = choose_counts(s, i + 1, rest, gained + more, dropped + fewer);
        if (end != EPLB_FEWEST_NOTHING) {
            return end;
        }
    }
    return EPLB_FEWEST_NOTHING;
}

static void set_homes(eplb_fewest_search *s)
{
    const eplb_fewest_layer *layer = s->layer;
    for (int32_t g = 0; g < layer->gpus; g++) {
        s->home[g] = 0;
        for (int32_t e = 0; e < layer->experts; e++) {
            if (eplb_fewest_is_home(layer, g, e)) {
                s->home[g] |= (uint64_t)1 << e;
            }
        }
    }
}

eplb_fewest_end eplb_fewest_search_run(eplb_fewest_search *s, int64_t copies, eplb_error *error)
{
    s->loose = s->layer->limit * (1.0 + EPLB_FEWEST_ROUNDING);
    s->copies = (int32_t)copies;
    s->error = error;
    for (int32_t k = 0; k < s->layer->scenarios; k++) {
        s->worst[k] = 1.0;
    }
    set_homes(s);
    sort_by_load(s);
    int32_t spare = prepare(s);
    return spare >= 0 ? choose_counts(s, 0, spare, 0, 0) : EPLB_FEWEST_NOTHING;
}
