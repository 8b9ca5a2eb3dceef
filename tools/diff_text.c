/* SPDX-License-Identifier: MIT */
/* A difference for people: the layers that change most, who has most to do, and what it comes to.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "diff.h"
#include "draft_layers.h"
#include "message.h"
#include "output.h"

#define LAYERS_SHOWN 8

static int64_t changed_replicas(const diff_row *row)
{
    return row->gained + row->lost;
}

/* Most copies first, then most changes of other kinds; equal ones in order. */
static int compare_rows(const void *a, const void *b)
{
    const diff_row *first = *(const diff_row *const *)a;
    const diff_row *second = *(const diff_row *const *)b;
    if (first->copies != second->copies) {
        return first->copies > second->copies ? -1 : 1;
    }
    if (changed_replicas(first) != changed_replicas(second)) {
        return changed_replicas(first) > changed_replicas(second) ? -1 : 1;
    }
    if (first->changed_slots != second->changed_slots) {
        return first->changed_slots > second->changed_slots ? -1 : 1;
    }
    return first->layer_id < second->layer_id ? -1 : 1;
}

static void print_header(const diff_report *self)
{
    char of_draft[48];
    int32_t draft = eplb_placement_draft_layers(self->maps->new_map);
    printf("%" PRId32 " layer%s%s of %" PRId32 " expert%s on %" PRId32 " GPU%s, ", self->layers,
           plural(self->layers), draft_layers_text(draft, of_draft, sizeof(of_draft)),
           self->experts, plural(self->experts), self->gpus, plural(self->gpus));
    if (self->old_slots != self->new_slots) {
        printf("%" PRId32 " slots before, ", self->old_slots);
    }
    printf("%" PRId32 " slot%s%s\n", self->new_slots, plural(self->new_slots),
           self->old_slots != self->new_slots ? " after" : "");
}

static void print_row(const diff_report *self, const diff_row *row)
{
    printf("%7" PRId32 " %8" PRId64 " %8" PRId32 " %8" PRId32 " %8" PRId32, row->layer_id,
           row->copies, row->changed_slots, row->more, row->fewer);
    if (row->scored) {
        printf(" %10.4f %10.4f", row->before, row->after);
    } else if (self->has_load) {
        printf(" %10s %10s", "no load", "");
    }
    putchar('\n');
}

static int print_table(const diff_report *self)
{
    const diff_row **order = calloc((size_t)self->layers, sizeof(*order));
    if (order == NULL) {
        return out_of_memory();
    }
    for (int32_t l = 0; l < self->layers; l++) {
        order[l] = &self->rows[l];
    }
    qsort(order, (size_t)self->layers, sizeof(*order), compare_rows);
    int32_t shown = self->changed_layers < LAYERS_SHOWN ? self->changed_layers : LAYERS_SHOWN;
    printf("\nExperts with more and with fewer replicas than before%s:\n",
           self->has_load ? "; imbalance: busiest GPU / mean" : "");
    printf("%7s %8s %8s %8s %8s%s\n", "layer", "copies", "slots", "more", "fewer",
           self->has_load ? "     before      after" : "");
    for (int32_t i = 0; i < shown; i++) {
        print_row(self, order[i]);
    }
    if (shown < self->changed_layers) {
        printf("    and %" PRId32 " more layer%s (--json lists them)\n",
               self->changed_layers - shown, plural(self->changed_layers - shown));
    }
    putchar('\n');
    free(order);
    return EXIT_DONE;
}

static int64_t received(const eplb_gpu_copies *gpu)
{
    return gpu->received_intra + gpu->received_inter;
}

static int64_t sent(const eplb_gpu_copies *gpu)
{
    return gpu->sent_intra + gpu->sent_inter;
}

static void print_busiest(const diff_report *self, const char *does,
                          int64_t (*number)(const eplb_gpu_copies *))
{
    int32_t busiest = 0;
    for (int32_t g = 1; g < self->gpus; g++) {
        if (number(&self->traffic[g]) > number(&self->traffic[busiest])) {
            busiest = g;
        }
    }
    int64_t most = number(&self->traffic[busiest]);
    printf("GPU %" PRId32 " %s most: %" PRId64 " %s.\n", busiest, does, most,
           most == 1 ? "copy" : "copies");
}

/* Where the weights come from. Without nodes that were told all GPUs are alike. */
static void print_sources(const diff_report *self)
{
    const eplb_migration_info *schedule = &self->schedule;
    const char *comma = "Sources: ";
    if (schedule->node_copies > 0) {
        printf("%s%" PRId64 " from %s", comma, schedule->node_copies,
               self->has_nodes ? "the same node" : "other GPUs");
        comma = ", ";
    }
    if (schedule->remote_copies > 0) {
        printf("%s%" PRId64 " from other nodes", comma, schedule->remote_copies);
        comma = ", ";
    }
    if (schedule->storage_copies > 0) {
        printf("%s%" PRId64 " from storage (no GPU has the experts)", comma,
               schedule->storage_copies);
    }
    printf("; in %" PRId64 " round%s, %s.\n", schedule->rounds, plural(schedule->rounds),
           self->mode == EPLB_MIGRATION_STAGED ? "by way of buffers" : "in place");
}

static void print_extra_copies(const diff_report *self)
{
    if (self->extra > 0) {
        printf("%" PRId64 " of these %s not needed with more buffer slots (--buffer-slots).\n",
               self->extra, self->extra == 1 ? "is" : "are");
    }
}

static void print_traffic(const diff_report *self)
{
    print_busiest(self, "receives", received);
    print_busiest(self, "sends", sent);
    print_sources(self);
    print_extra_copies(self);
}

static void print_imbalance(const diff_report *self)
{
    if (self->scored_layers > 0) {
        printf("%-16s %10s %10s\n", "Over the layers", "mean", "worst");
        printf("%-16s %10.4f %10.4f\n", "before", self->before.mean, self->before.worst);
        printf("%-16s %10.4f %10.4f\n", "after", self->after.mean, self->after.worst);
    }
}

/* "14 copies in 6 of 58 layers (588 MiB)" */
static void print_copies(const diff_report *self)
{
    printf("%" PRId64 " %s in %" PRId32 " of %" PRId32 " layer%s", self->copies,
           self->copies == 1 ? "copy" : "copies", self->copied_layers, self->layers,
           plural(self->layers));
    if (self->bytes >= 0) {
        char bytes[32];
        printf(" (%s)", eplb_bytes_text(self->bytes, bytes, sizeof(bytes)));
    }
}

static void print_conclusion(const diff_report *self)
{
    if (self->changed_layers == 0) {
        puts("No difference.");
        return;
    }
    if (self->copies > 0) {
        print_copies(self);
    } else {
        printf("No copies: slots of %" PRId32 " of %" PRId32 " layer%s are only renamed or emptied",
               self->changed_layers, self->layers, plural(self->layers));
    }
    if (self->scored_layers > 0) {
        printf(": imbalance %.4f -> %.4f", self->before.mean, self->after.mean);
    }
    puts(".");
}

int diff_report_print(const diff_report *self)
{
    print_header(self);
    if (self->changed_layers > 0 && print_table(self) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    print_imbalance(self);
    if (self->copies + self->extra > 0) {
        print_traffic(self);
    }
    if (self->copies > 0 && self->scored_layers > 0) {
        price_print(&self->terms, &self->payoff, stdout);
    }
    print_conclusion(self);
    return output_finish(EXIT_DONE);
}
