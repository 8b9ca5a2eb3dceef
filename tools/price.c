/* SPDX-License-Identifier: MIT */
#include "price.h"

#include <math.h>

#include "message.h"
#include "output.h"

const char *price_option_given(const price_values *self)
{
    return self->bandwidth.items != NULL ? "bandwidth"
           : self->interval > 0          ? "interval"
           : self->step_time > 0.0       ? "step-time"
           : self->stall >= 0.0          ? "stall"
                                         : NULL;
}

int price_values_check(const price_values *self, const char *name)
{
    return self->bandwidth.items != NULL && self->bandwidth.count != 2
               ? usage_error(name, "--bandwidth needs two numbers, such as 400G,50G, not %d",
                             self->bandwidth.count)
               : EXIT_DONE;
}

price_terms price_terms_make(const price_values *values, int64_t expert_bytes, int32_t layers,
                             bool has_nodes)
{
    price_terms terms = {.assumes_bytes = expert_bytes == 0};
    eplb_price_options *options = &terms.options;
    eplb_price_options_init(options);
    options->expert_bytes = expert_bytes > 0 ? expert_bytes : options->expert_bytes;
    if (values->bandwidth.items != NULL) {
        options->intra_bandwidth = (double)values->bandwidth.items[0];
        options->inter_bandwidth = (double)values->bandwidth.items[1];
    }
    if (!has_nodes) {
        options->intra_bandwidth = options->inter_bandwidth;
    }
    if (values->interval > 0) {
        options->interval_steps = values->interval;
    }
    if (values->step_time > 0.0) {
        options->layer_seconds = values->step_time / layers;
    }
    if (values->stall >= 0.0) {
        options->stall = values->stall;
    }
    return terms;
}

eplb_status price_of_copy(const price_terms *self, const eplb_cluster *cluster, double *price,
                          eplb_error *error)
{
    return eplb_copy_price(&self->options, eplb_cluster_nodes(cluster) > 1 ? 1 : 0, price, error);
}

eplb_status price_judge(const price_terms *self, const eplb_migration *migration, int32_t layers,
                        double before, double after, eplb_gpu_copies *copies, eplb_payoff *payoff,
                        eplb_error *error)
{
    const eplb_proposal proposal = {.struct_size = sizeof(proposal),
                                    .layers = layers,
                                    .before = before,
                                    .after = after,
                                    .copies = copies,
                                    .gpus = eplb_cluster_gpus(eplb_migration_cluster(migration))};
    payoff->struct_size = sizeof(*payoff);
    eplb_status status = eplb_gpu_copies_count(migration, copies, error);
    return status == EPLB_OK ? eplb_payoff_judge(&self->options, &proposal, payoff, error) : status;
}

void price_print(const price_terms *self, const eplb_payoff *payoff, FILE *out)
{
    fprintf(out, "%s%s", payoff->text, self->assumes_bytes ? " (with experts of " : "");
    if (self->assumes_bytes) {
        char bytes[32];
        fprintf(out, "%s: --expert-bytes or --model says it)",
                eplb_bytes_text(self->options.expert_bytes, bytes, sizeof(bytes)));
    }
    fputs(".\n", out);
}

void json_add_payoff(cJSON *object, const char *name, const price_terms *terms,
                     const eplb_payoff *payoff)
{
    if (payoff == NULL) {
        cJSON_AddNullToObject(object, name);
        return;
    }
    bool is_finite = isfinite(payoff->break_even_steps) != 0;
    cJSON *both = cJSON_AddObjectToObject(object, name);
    cJSON_AddBoolToObject(both, "pays", payoff->pays != 0);
    json_add_number(both, "break_even_steps", is_finite, payoff->break_even_steps);
    json_add_number(both, "break_even_seconds", is_finite, payoff->break_even_seconds);
    cJSON_AddNumberToObject(both, "interval_steps", terms->options.interval_steps);
    cJSON_AddNumberToObject(both, "copy_seconds", payoff->copy_seconds);
    cJSON_AddNumberToObject(both, "stall_seconds", payoff->stall_seconds);
    cJSON_AddNumberToObject(both, "gain_seconds_per_step", payoff->gain_seconds);
    json_add_integer(both, "expert_bytes", terms->options.expert_bytes);
    cJSON_AddBoolToObject(both, "assumes_expert_bytes", terms->assumes_bytes);
    cJSON_AddStringToObject(both, "text", payoff->text);
}
