/* SPDX-License-Identifier: MIT */
#include "synth_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/random.h>

/* Each number is a least value and what the most skewed layers add to it. */
#define TOTAL_SIGMA 0.56
#define TOTAL_SIGMA_SPAN 0.30
#define GROUP_SIGMA 0.23
#define GROUP_SIGMA_SPAN 0.18
#define DRIFT 0.2
#define DRIFT_SPAN 0.3
#define NEIGHBOUR_CORRELATION 0.7
#define SKEW_NOISE 0.15 /* of a layer's place between least and most skewed */

/* Draws that hit an expert which the token has already, before the rest are counted out. */
#define ATTEMPTS 16

/* An expert's popularity, and its cell of the alias table (Walker 1977, built as in Vose 1991): a
 * draw picks a cell evenly, then its own expert with probability `keep`, else `alias`. */
typedef struct popularity {
    double weight;
    double keep;
    int32_t alias;
} popularity;

struct synth_model {
    synth_shape shape;
    eplb_random random;
    popularity *table; /* [domains][layers][experts] */
    double *shared;    /* [experts]: scratch, what all domains of a layer have in common */
    double *group;     /* [groups]: scratch */
    int32_t *stack;    /* [experts]: scratch */
    int32_t *taken;    /* [experts]: the last token that took the expert */
};

/* A standard normal variate as the sum of 12 uniform ones (Irwin-Hall): its tails end at 6, which
 * is beyond what some thousand experts show, and no library function decides its bits. */
static double normal(eplb_random *random)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        sum += eplb_random_unit(random);
    }
    return sum;
}

/* e^x for |x| < 20, with the same bits everywhere, which libm does not promise. */
static double exponential(double x)
{
    double y = x / 256.0;
    double power = 1.0;
    for (int n = 9; n >= 1; n--) {
        power = 1.0 + power * y / (double)n;
    }
    for (int i = 0; i < 8; i++) {
        power *= power;
    }
    return power;
}

static popularity *row_of(const synth_model *self, int32_t domain, int32_t layer)
{
    size_t row = (size_t)domain * (size_t)self->shape.layers + (size_t)layer;
    return self->table + row * (size_t)self->shape.experts;
}

/* How skewed a layer is, from 0 (least) to 1: it grows with depth, around which a disturbance
 * correlates from layer to layer. */
static double next_skew(synth_model *self, int32_t layer, double *disturbance)
{
    double fresh = normal(&self->random);
    double kept = NEIGHBOUR_CORRELATION;
    *disturbance = layer == 0 ? fresh : kept * *disturbance + sqrt(1.0 - kept * kept) * fresh;
    double depth = self->shape.layers > 1 ? (double)layer / (double)(self->shape.layers - 1) : 0.5;
    double skew = depth + SKEW_NOISE * *disturbance;
    return skew < 0.0 ? 0.0 : skew > 1.0 ? 1.0 : skew;
}

/* Draws the popularities of a layer in every domain. What an expert's logarithm consists of, group,
 * expert and domain, adds up to the total variance in each domain. */
static void draw_weights(synth_model *self, int32_t layer, double skew)
{
    const synth_shape *shape = &self->shape;
    double total_sigma = TOTAL_SIGMA + TOTAL_SIGMA_SPAN * skew;
    double group_sigma = shape->groups > 1 ? GROUP_SIGMA + GROUP_SIGMA_SPAN * skew : 0.0;
    double drift = DRIFT + DRIFT_SPAN * eplb_random_unit(&self->random);
    /* Two domains differ by the difference of two variates. */
    double domain_sigma = drift * sqrt(0.5);
    double own_sigma =
        sqrt(total_sigma * total_sigma - group_sigma * group_sigma - domain_sigma * domain_sigma);
    for (int32_t g = 0; g < shape->groups; g++) {
        self->group[g] = group_sigma * normal(&self->random);
    }
    int32_t group_size = shape->experts / shape->groups;
    for (int32_t e = 0; e < shape->experts; e++) {
        self->shared[e] = self->group[e / group_size] + own_sigma * normal(&self->random);
    }
    for (int32_t d = 0; d < shape->domains; d++) {
        popularity *row = row_of(self, d, layer);
        for (int32_t e = 0; e < shape->experts; e++) {
            row[e].weight = exponential(self->shared[e] + domain_sigma * normal(&self->random));
        }
    }
}

/* Cells with less than their share are filled up from those with more. The stack holds the former
 * from its start and the latter from its end. */
static void build_alias_table(const synth_model *self, popularity *row)
{
    int32_t experts = self->shape.experts;
    double sum = 0.0;
    for (int32_t e = 0; e < experts; e++) {
        sum += row[e].weight;
    }
    int32_t small = 0;
    int32_t large = experts;
    for (int32_t e = 0; e < experts; e++) {
        row[e].keep = row[e].weight / sum * (double)experts;
        row[e].alias = e;
        self->stack[row[e].keep < 1.0 ? small++ : --large] = e;
    }
    while (small > 0 && large < experts) {
        popularity *poor = &row[self->stack[--small]];
        int32_t rich = self->stack[large];
        poor->alias = rich;
        row[rich].keep -= 1.0 - poor->keep;
        if (row[rich].keep < 1.0) {
            large++;
            self->stack[small++] = rich;
        }
    }
    /* What rounding left over is a full cell. */
    while (small > 0) {
        row[self->stack[--small]].keep = 1.0;
    }
}

synth_model *synth_model_create(const synth_shape *shape)
{
    synth_model *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    size_t experts = (size_t)shape->experts;
    self->shape = *shape;
    /* The options' ranges keep the number of cells far below SIZE_MAX. */
    size_t cells = (size_t)shape->domains * (size_t)shape->layers * experts;
    self->table = calloc(cells, sizeof(*self->table));
    self->shared = calloc(experts, sizeof(*self->shared));
    self->group = calloc((size_t)shape->groups, sizeof(*self->group));
    self->stack = calloc(experts, sizeof(*self->stack));
    self->taken = calloc(experts, sizeof(*self->taken));
    if (self->table == NULL || self->shared == NULL || self->group == NULL || self->stack == NULL ||
        self->taken == NULL) {
        synth_model_destroy(self);
        return NULL;
    }
    eplb_random_seed(&self->random, shape->seed);
    double disturbance = 0.0;
    for (int32_t l = 0; l < shape->layers; l++) {
        draw_weights(self, l, next_skew(self, l, &disturbance));
        for (int32_t d = 0; d < shape->domains; d++) {
            build_alias_table(self, row_of(self, d, l));
        }
    }
    return self;
}

void synth_model_destroy(synth_model *self)
{
    if (self != NULL) {
        free(self->table);
        free(self->shared);
        free(self->group);
        free(self->stack);
        free(self->taken);
        free(self);
    }
}

static int32_t draw_expert(synth_model *self, const popularity *row)
{
    double position = eplb_random_unit(&self->random) * (double)self->shape.experts;
    int32_t cell = (int32_t)position;
    return position - (double)cell < row[cell].keep ? cell : row[cell].alias;
}

/* Draws among the experts that the token does not have yet, by counting them out. */
static int32_t draw_remaining(synth_model *self, const popularity *row, int32_t token)
{
    double sum = 0.0;
    for (int32_t e = 0; e < self->shape.experts; e++) {
        sum += self->taken[e] != token ? row[e].weight : 0.0;
    }
    double position = eplb_random_unit(&self->random) * sum;
    int32_t last = 0;
    for (int32_t e = 0; e < self->shape.experts; e++) {
        if (self->taken[e] != token) {
            last = e;
            position -= row[e].weight;
            if (position < 0.0) {
                break;
            }
        }
    }
    return last;
}

void synth_model_draw(synth_model *self, int32_t domain, int32_t layer, int32_t *counts)
{
    const popularity *row = row_of(self, domain, layer);
    size_t experts = (size_t)self->shape.experts;
    memset(counts, 0, experts * sizeof(*counts));
    memset(self->taken, 0, experts * sizeof(*self->taken));
    for (int32_t token = 1; token <= self->shape.tokens; token++) {
        for (int32_t k = 0; k < self->shape.topk; k++) {
            int32_t expert = draw_expert(self, row);
            for (int i = 0; i < ATTEMPTS && self->taken[expert] == token; i++) {
                expert = draw_expert(self, row);
            }
            if (self->taken[expert] == token) {
                expert = draw_remaining(self, row, token);
            }
            self->taken[expert] = token;
            counts[expert]++;
        }
    }
}
