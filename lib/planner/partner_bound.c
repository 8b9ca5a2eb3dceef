/* SPDX-License-Identifier: MIT */
#include "planner/partner_bound.h"

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

/* With three slots a GPU shares below this part of T may pay. */
#define TOP 0.125

eplb_status eplb_partner_bound_init(eplb_partner_bound **out, const eplb_hooks *hooks,
                                    const eplb_shape *shape, eplb_error *error)
{
    *out = NULL;
    if (!eplb_shape_has_pairs(shape) && !eplb_shape_has_triples(shape)) {
        return EPLB_OK;
    }
    eplb_partner_bound *self = eplb_alloc_zeroed(hooks, 1, sizeof(*self));
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    *out = self;
    int32_t most = eplb_shape_most_replicas(shape);
    self->most = most < EPLB_PARTNER_OPTIONS ? most : EPLB_PARTNER_OPTIONS;
    self->triples = eplb_shape_has_triples(shape);
    self->most_shares = 2 * shape->experts + shape->gpus + 1;
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
        eplb_partner_bound_free(out, hooks);
        return eplb_out_of_memory(error);
    }
    return EPLB_OK;
}

void eplb_partner_bound_free(eplb_partner_bound **partners, const eplb_hooks *hooks)
{
    eplb_partner_bound *self = *partners;
    if (self != NULL) {
        void *arrays[] = {self->count, self->step,  self->options,
                          self->share, self->order, self->scratch};
        for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
            eplb_free(hooks, arrays[i]);
        }
        eplb_free(hooks, self);
    }
    *partners = NULL;
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

/* The shares listed, or where there are too many, some of them; rising. */
static int32_t choose_levels(eplb_partner_bound *self, int32_t shares, double *level)
{
    for (int32_t i = 0; i < shares; i++) {
        self->order[i] = i;
    }
    eplb_sort_descending(self->order, shares, self->share, self->scratch);
    int32_t levels = shares < EPLB_PARTNER_LEVELS ? shares : EPLB_PARTNER_LEVELS;
    for (int32_t k = 0; k < levels; k++) {
        int64_t place = (int64_t)(k + 1) * shares / levels - 1;
        level[levels - 1 - k] = self->share[self->order[place]];
    }
    return levels;
}

/* The shares that an expert can have and that a GPU with partners that do not pay has no room for.
 */
static void set_hot_levels(eplb_partner_bound *self, const eplb_layer *layer, double load)
{
    double room = self->triples ? load * (1.0 - 2.0 * TOP) : load / 2.0;
    int32_t most = eplb_shape_most_replicas(layer->shape);
    int32_t shares = 0;
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        for (int32_t c = fewest_replicas(layer, e, load); c <= most && shares < self->most_shares;
             c++) {
            double share = layer->load[e] / (double)c;
            if (share <= room) {
                break;
            }
            self->share[shares++] = share;
        }
    }
    self->hot_levels = choose_levels(self, shares, self->hot);
}

/* With two slots the partners of hot shares are told apart, with three the small shares that one or
 * two replicas have. */
static void set_keys(eplb_partner_bound *self, const eplb_layer *layer, double load)
{
    if (!self->triples) {
        self->levels = self->hot_levels;
        memcpy(self->key, self->hot, sizeof(self->hot));
        return;
    }
    int32_t shares = 0;
    self->share[shares++] = -load * TOP;
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        for (int32_t c = 1; c <= 2; c++) {
            double share = layer->load[e] / (double)c;
            if (share < load * TOP) {
                self->share[shares++] = -share;
            }
        }
    }
    self->levels = choose_levels(self, shares, self->key);
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

/* The step of a share that is smaller than that on step `last`, -1: any. With three slots a share
 * is on the level that it is the floor of. */
static int32_t step_of(const eplb_partner_bound *self, double share, double load, int32_t last)
{
    if (share > load / 2.0) {
        return EPLB_PARTNER_LEVELS + count_up_to(self->hot, self->hot_levels, share);
    }
    double key = self->triples ? -share * (1.0 + EPLB_ROUNDING) : load - share;
    if (last < 0 || last > EPLB_PARTNER_LEVELS) {
        return EPLB_PARTNER_LEVELS - count_up_to(self->key, self->levels, key);
    }
    int32_t level = EPLB_PARTNER_LEVELS - last;
    while (level < self->levels && self->key[level] <= key) {
        level++;
    }
    return EPLB_PARTNER_LEVELS - level;
}

static void set_options(eplb_partner_bound *self, const eplb_layer *layer, double load)
{
    int32_t most = eplb_shape_most_replicas(layer->shape);
    int32_t lowest = EPLB_PARTNER_LEVELS - self->levels;
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

/* With three slots: the least share on a level of the small ones; those that do not pay are on
 * level 0. */
static double floor_of(const eplb_partner_bound *self, int32_t level)
{
    return level < self->levels ? -self->key[level] : 0.0;
}

static double paid_on(const eplb_partner_bound *self, int32_t level)
{
    return level > 0 ? self->value[level - 1] : 0.0;
}

/* Of the pairs of levels whose floors fit beside a hot share, the one that pays least. */
static void choose_partners(eplb_partner_bound *self, int32_t hot_level, double rest)
{
    int32_t other = self->levels;
    double least = 3.0;
    for (int32_t level = 0; level <= other; level++) {
        double space = rest - floor_of(self, level);
        if (floor_of(self, other) > space) {
            continue;
        }
        while (other > level && floor_of(self, other - 1) <= space) {
            other--;
        }
        double paid = paid_on(self, level) + paid_on(self, other);
        if (paid < least) {
            least = paid;
            self->partner[hot_level][0] = level;
            self->partner[hot_level][1] = other;
        }
    }
}

static void set_partners(eplb_partner_bound *self, double load)
{
    for (int32_t k = 0; k < self->hot_levels; k++) {
        if (self->triples) {
            choose_partners(self, k, load - self->hot[k]);
        } else {
            self->partner[k][0] = 0;
            self->partner[k][1] = k + 1;
        }
    }
}

static void set_prices(eplb_partner_bound *self, double load)
{
    double *price = self->price + EPLB_PARTNER_LEVELS;
    set_partners(self, load);
    price[0] = 1.0;
    for (int32_t k = 0; k < self->levels; k++) {
        price[-k - 1] = 1.0 - self->value[k];
    }
    for (int32_t k = 0; k < self->hot_levels; k++) {
        const int32_t *partner = self->partner[k];
        price[k + 1] = 1.0 + (paid_on(self, partner[0]) + paid_on(self, partner[1]));
    }
}

/* How the slots wanted change with each value, by the replicas on the steps. */
static void set_slope(eplb_partner_bound *self)
{
    const double *replicas = self->replicas + EPLB_PARTNER_LEVELS;
    for (int32_t k = 0; k < self->levels; k++) {
        self->slope[k] = -replicas[-k - 1];
    }
    for (int32_t k = 0; k < self->hot_levels; k++) {
        for (int32_t i = 0; i < 2; i++) {
            if (self->partner[k][i] > 0) {
                self->slope[self->partner[k][i] - 1] += replicas[k + 1];
            }
        }
    }
}

/* The slots that the experts want at least, by f, and how that changes with f. */
static double wanted_slots(eplb_partner_bound *self, int32_t experts, double load)
{
    double sum = 0.0;
    set_prices(self, load);
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
    set_slope(self);
    return sum;
}

/* The nearest rising values: runs that fall take their mean (pool adjacent violators). */
static void make_rising(eplb_partner_bound *self)
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
static bool climb(eplb_partner_bound *self, double value, double aim)
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

/* A straight line, a little flatter than the one that with two slots only says that the mean is a
 * bound. */
static double first_value(const eplb_partner_bound *self, double key, double load)
{
    double part = self->triples ? 1.0 + key / (load * TOP) : 2.0 * key / load - 1.0;
    return 0.9 * part;
}

/* Starts from the last f that proved something; at first from a straight line. */
static void start_values(eplb_partner_bound *self, double load)
{
    for (int32_t k = 0; k < self->levels; k++) {
        double key = self->key[k];
        int32_t below = count_up_to(self->proven_key, self->proven_levels, key);
        self->value[k] = self->proven_levels == 0 ? first_value(self, key, load)
                         : below == 0             ? 0.0
                                                  : self->proven_value[below - 1];
    }
}

static void keep_proof(eplb_partner_bound *self)
{
    self->proven_levels = self->levels;
    memcpy(self->proven_key, self->key, sizeof(self->key));
    memcpy(self->proven_value, self->value, sizeof(self->value));
}

/* Whether all counts take more than the slots to keep to `load`, as far as so many steps tell. */
static bool refute(eplb_layer *layer, double load, int64_t steps)
{
    eplb_partner_bound *self = layer->partners;
    double slots = (double)layer->shape->slots;
    double best = -slots;
    double reach = FIRST_REACH;
    int32_t idle = 0;
    set_hot_levels(self, layer, load);
    set_keys(self, layer, load);
    set_options(self, layer, load);
    start_values(self, load);
    for (int64_t i = 0; i < steps && reach >= LAST_REACH; i++) {
        layer->moves++;
        double value = wanted_slots(self, layer->shape->experts, load) - slots;
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

double eplb_layer_partner_bound(eplb_layer *layer, double low, double high, double tolerance,
                                int64_t steps)
{
    double simple = low;
    double load = low + (high - low) * FIRST_PART;
    layer->partners->proven_levels = 0;
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
