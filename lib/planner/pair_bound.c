/* SPDX-License-Identifier: MIT */
#include "planner/pair_bound.h"

#include <string.h>

#include "base/memory.h"

/* Loads are told apart by this much, relatively: far more than rounding can move a sum. */
#define MARGIN 1e-9

/* A step aims so far, in slots, above the best value so far, at first; half as far after so many
 * steps in a row that did not raise it; and no nearer than the last. */
#define FIRST_REACH 32.0
#define PATIENCE 8
#define LAST_REACH 0.01

/* Real layers' bounds are about there between the simple ones and what counts by Adams reach. */
#define FIRST_PART 0.75

eplb_status eplb_pair_bound_init(eplb_pair_bound **out, const eplb_hooks *hooks,
                                 const eplb_shape *shape, eplb_error *error)
{
    *out = NULL;
    if (!eplb_shape_has_pairs(shape)) {
        return EPLB_OK;
    }
    eplb_pair_bound *self = eplb_alloc_zeroed(hooks, 1, sizeof(*self));
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    *out = self;
    int32_t most = eplb_shape_most_replicas(shape);
    self->most = most < EPLB_PAIR_OPTIONS ? most : EPLB_PAIR_OPTIONS;
    self->most_shares = shape->experts + shape->gpus;
    size_t experts = (size_t)shape->experts;
    size_t options = experts * (size_t)self->most; /* at most 2^22 */
    size_t shares = (size_t)self->most_shares;
    self->count = eplb_alloc(hooks, options, sizeof(*self->count));
    self->step = eplb_alloc(hooks, options, sizeof(*self->step));
    self->options = eplb_alloc(hooks, experts, sizeof(*self->options));
    self->share = eplb_alloc(hooks, shares, sizeof(*self->share));
    self->order = eplb_alloc(hooks, shares, sizeof(*self->order));
    self->scratch = eplb_alloc(hooks, shares, sizeof(*self->scratch));
    if (self->count == NULL || self->step == NULL || self->options == NULL || self->share == NULL ||
        self->order == NULL || self->scratch == NULL) {
        eplb_pair_bound_free(out, hooks);
        return eplb_out_of_memory(error);
    }
    return EPLB_OK;
}

void eplb_pair_bound_free(eplb_pair_bound **pairs, const eplb_hooks *hooks)
{
    eplb_pair_bound *self = *pairs;
    if (self != NULL) {
        void *arrays[] = {self->count, self->step,  self->options,
                          self->share, self->order, self->scratch};
        for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
            eplb_free(hooks, arrays[i]);
        }
        eplb_free(hooks, self);
    }
    *pairs = NULL;
}

/* Fewest replicas whose shares are at most `load`; no more than there can be. */
static int32_t fewest_replicas(const eplb_layer *layer, int32_t expert, double load)
{
    int32_t most = eplb_shape_most_replicas(layer->shape);
    double needed = layer->load[expert] / load;
    int32_t count = needed < (double)most ? (int32_t)needed : most;
    count = count > 1 ? count : 1;
    while (count < most && layer->load[expert] / (double)count > load) {
        count++;
    }
    return count;
}

/* The shares above T / 2 that an expert can have; where there are too many levels, some. */
static void set_thresholds(eplb_pair_bound *self, const eplb_layer *layer, double load)
{
    int32_t most = eplb_shape_most_replicas(layer->shape);
    int32_t shares = 0;
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        for (int32_t c = fewest_replicas(layer, e, load); c <= most && shares < self->most_shares;
             c++) {
            double share = layer->load[e] / (double)c;
            if (share <= load / 2.0) {
                break;
            }
            self->order[shares] = shares;
            self->share[shares++] = share;
        }
    }
    eplb_sort_descending(self->order, shares, self->share, self->scratch);
    self->levels = shares < EPLB_PAIR_LEVELS ? shares : EPLB_PAIR_LEVELS;
    for (int32_t k = 0; k < self->levels; k++) {
        int64_t place = (int64_t)(k + 1) * shares / self->levels - 1;
        self->threshold[self->levels - 1 - k] = self->share[self->order[place]];
    }
}

/* How many of the rising numbers are at most `x`. */
static int32_t count_up_to(const double *rising, int32_t count, double x)
{
    int32_t low = 0;
    int32_t high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (rising[middle] <= x) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The step of a share that is smaller than that on step `last`, -1: any. */
static int32_t step_of(const eplb_pair_bound *self, double share, double load, int32_t last)
{
    if (share > load / 2.0) {
        return EPLB_PAIR_LEVELS + count_up_to(self->threshold, self->levels, share);
    }
    double rest = load - share;
    if (last < 0 || last > EPLB_PAIR_LEVELS) {
        return EPLB_PAIR_LEVELS - count_up_to(self->threshold, self->levels, rest);
    }
    int32_t level = EPLB_PAIR_LEVELS - last;
    while (level < self->levels && self->threshold[level] <= rest) {
        level++;
    }
    return EPLB_PAIR_LEVELS - level;
}

static void set_options(eplb_pair_bound *self, const eplb_layer *layer, double load)
{
    int32_t most = eplb_shape_most_replicas(layer->shape);
    int32_t lowest = EPLB_PAIR_LEVELS - self->levels;
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        double *count = self->count + (size_t)e * (size_t)self->most;
        int32_t *step = self->step + (size_t)e * (size_t)self->most;
        int32_t options = 0;
        int32_t last = -1;
        for (int32_t c = fewest_replicas(layer, e, load); c <= most && last != lowest; c++) {
            int32_t next = step_of(self, layer->load[e] / (double)c, load, last);
            if (next == last) {
                continue;
            }
            if (options == self->most - 1 && c < most) {
                next = lowest; /* no dearer than any that are left */
            }
            count[options] = (double)c;
            step[options++] = next;
            last = next;
        }
        self->options[e] = options;
    }
}

static void set_prices(eplb_pair_bound *self)
{
    double *price = self->price + EPLB_PAIR_LEVELS;
    price[0] = 1.0;
    for (int32_t k = 0; k < self->levels; k++) {
        price[k + 1] = 1.0 + self->value[k];
        price[-k - 1] = 1.0 - self->value[k];
    }
}

/* The slots that the experts want at least, by f, and how that changes with f. */
static double wanted_slots(eplb_pair_bound *self, int32_t experts)
{
    double sum = 0.0;
    set_prices(self);
    memset(self->replicas, 0, sizeof(self->replicas));
    for (int32_t e = 0; e < experts; e++) {
        const double *count = self->count + (size_t)e * (size_t)self->most;
        const int32_t *step = self->step + (size_t)e * (size_t)self->most;
        double least = count[0] * self->price[step[0]];
        int32_t chosen = 0;
        for (int32_t i = 1; i < self->options[e]; i++) {
            double cost = count[i] * self->price[step[i]];
            chosen = cost < least ? i : chosen;
            least = cost < least ? cost : least;
        }
        sum += least;
        self->replicas[step[chosen]] += count[chosen];
    }
    const double *replicas = self->replicas + EPLB_PAIR_LEVELS;
    for (int32_t k = 0; k < self->levels; k++) {
        self->slope[k] = replicas[k + 1] - replicas[-k - 1];
    }
    return sum;
}

/* The nearest rising values: runs that fall take their mean (pool adjacent violators). */
static void make_rising(eplb_pair_bound *self)
{
    double *mean = self->slope; /* its use is over */
    int32_t runs = 0;
    for (int32_t k = 0; k < self->levels; k++) {
        double value = self->value[k];
        int32_t length = 1;
        while (runs > 0 && mean[runs - 1] > value) {
            runs--;
            value = value * (double)length + mean[runs] * (double)self->run[runs];
            length += self->run[runs];
            value /= (double)length;
        }
        mean[runs] = value;
        self->run[runs++] = length;
    }
    int32_t k = 0;
    for (int32_t i = 0; i < runs; i++) {
        double value = mean[i] < 0.0 ? 0.0 : mean[i] > 1.0 ? 1.0 : mean[i];
        for (int32_t end = k + self->run[i]; k < end; k++) {
            self->value[k] = value;
        }
    }
}

/* One step up the slope, to where the value would be `aim` if it were a plane. */
static bool climb(eplb_pair_bound *self, double value, double aim)
{
    double square = 0.0;
    for (int32_t k = 0; k < self->levels; k++) {
        square += self->slope[k] * self->slope[k];
    }
    if (!(square > 0.0)) {
        return false;
    }
    double step = (aim - value) / square;
    for (int32_t k = 0; k < self->levels; k++) {
        self->value[k] += step * self->slope[k];
    }
    make_rising(self);
    return true;
}

/* Starts from the last f that proved something; at first from a straight line, a little flatter
 * than the one that only says that the mean is a bound. */
static void start_values(eplb_pair_bound *self, double load)
{
    for (int32_t k = 0; k < self->levels; k++) {
        double x = self->threshold[k];
        int32_t below = count_up_to(self->proven_threshold, self->proven_levels, x);
        self->value[k] = self->proven_levels == 0 ? 0.9 * (2.0 * x / load - 1.0)
                         : below == 0             ? 0.0
                                                  : self->proven_value[below - 1];
    }
}

static void keep_proof(eplb_pair_bound *self)
{
    self->proven_levels = self->levels;
    memcpy(self->proven_threshold, self->threshold, sizeof(self->threshold));
    memcpy(self->proven_value, self->value, sizeof(self->value));
}

/* Whether all counts take more than the slots to keep to `load`, as far as so many steps tell. */
static bool refute(eplb_layer *layer, double load, int64_t steps)
{
    eplb_pair_bound *self = layer->pairs;
    double slots = (double)layer->shape->slots;
    double best = -slots;
    double reach = FIRST_REACH;
    int32_t idle = 0;
    set_thresholds(self, layer, load);
    set_options(self, layer, load);
    start_values(self, load);
    for (int64_t i = 0; i < steps && reach >= LAST_REACH; i++) {
        layer->moves++;
        double value = wanted_slots(self, layer->shape->experts) - slots;
        if (value > MARGIN * slots) {
            keep_proof(self);
            return true;
        }
        if (value > best) {
            best = value;
            idle = 0;
            memcpy(self->kept, self->value, sizeof(self->kept));
        } else if (++idle > PATIENCE) {
            idle = 0;
            reach /= 2.0;
            memcpy(self->value, self->kept, sizeof(self->kept));
            continue;
        }
        if (!climb(self, value, best + reach)) {
            return false;
        }
    }
    return false;
}

double eplb_layer_pair_bound(eplb_layer *layer, double low, double high, double tolerance,
                             int64_t steps)
{
    double simple = low;
    double load = low + (high - low) * FIRST_PART;
    layer->pairs->proven_levels = 0;
    while (high - low > tolerance * low) {
        if (refute(layer, load, steps)) {
            low = load;
        } else {
            high = load;
        }
        load = low + (high - low) / 2.0;
    }
    return low > simple ? low * (1.0 - MARGIN) : low;
}
