/* SPDX-License-Identifier: MIT */
#include "format/trtllm_counts.h"

#include "base/memory.h"
#include "format/one_model.h"
#include "format/trtllm_rank.h"

#define META_INFO "meta_info.json"
#define RANK_PREFIX "rank"
#define RANK_SUFFIX ".safetensors"

/* A file of a directory. */
typedef struct rank_file {
    eplb_reading reading;
    eplb_trtllm_rank rank;
    size_t tensor; /* the next one */
    int32_t ranks; /* of its pipeline stage, if it is the first of one; else 0 */
} rank_file;

typedef struct trtllm_counts {
    rank_file *files; /* [count] */
    int32_t count;
    double *sums;   /* [experts] */
    double *counts; /* [experts] of one rank */
} trtllm_counts;

bool eplb_trtllm_probe_counts(const eplb_probe *probe)
{
    eplb_safetensors_start start;
    return eplb_safetensors_probe(probe, &start) && eplb_trtllm_is_key(start.name);
}

static bool is_rank(const char *name, int32_t *rank)
{
    return eplb_listing_number(name, RANK_PREFIX, RANK_SUFFIX, rank);
}

static int32_t count_ranks(const eplb_listing *listing)
{
    int32_t count = 0;
    int32_t rank;
    for (int32_t i = 0; i < listing->count; i++) {
        count += is_rank(listing->names[i], &rank) ? 1 : 0;
    }
    return count;
}

bool eplb_trtllm_probe_directory(const eplb_listing *listing)
{
    for (int32_t i = 0; i < listing->count; i++) {
        if (strcmp(listing->names[i], META_INFO) == 0) {
            return count_ranks(listing) > 0;
        }
    }
    return false;
}

/* Opens the files of all ranks, in their order, and makes sure that none is missing. */
static eplb_status open_files(trtllm_counts *self, const eplb_reading *reading, eplb_error *error)
{
    const eplb_listing *listing = reading->listing;
    int32_t most = count_ranks(listing);
    eplb_ranks ranks = {0};
    eplb_status status = EPLB_OK;
    if (most == 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: no file " RANK_PREFIX "<number>" RANK_SUFFIX " in it",
                              reading->input.name);
    }
    self->files = eplb_alloc_zeroed(&reading->hooks, (size_t)most, sizeof(*self->files));
    if (self->files == NULL) {
        return eplb_out_of_memory(error);
    }
    for (int32_t i = 0; i < listing->count && status == EPLB_OK; i++) {
        int32_t rank;
        if (!is_rank(listing->names[i], &rank)) {
            continue;
        }
        eplb_reading *file = &self->files[self->count++].reading;
        status = eplb_reading_open_child(reading, listing->names[i], file, error);
        if (status == EPLB_OK) {
            status = eplb_ranks_add(&ranks, &reading->hooks, file->input.name, rank, error);
        }
    }
    if (status == EPLB_OK) {
        status = eplb_ranks_check(&ranks, error);
    }
    eplb_ranks_clear(&ranks, &reading->hooks);
    return status;
}

/* Compares a rank with the first one of each pipeline stage: it is of one of them, or the first of
 * another one. */
static eplb_status find_stage(trtllm_counts *self, int32_t index, eplb_error *error)
{
    rank_file *file = &self->files[index];
    for (int32_t r = 0; r < index; r++) {
        rank_file *first = &self->files[r];
        if (first->ranks == 0) {
            continue;
        }
        eplb_status status = eplb_trtllm_rank_compare(&file->rank, &first->rank, error);
        bool is_there = eplb_trtllm_rank_shares_layers(&file->rank, &first->rank);
        first->ranks += is_there ? 1 : 0;
        if (status != EPLB_OK || is_there) {
            return status;
        }
    }
    file->ranks = 1;
    return EPLB_OK;
}

/* All stages have equally many ranks. */
static eplb_status check_stages(const trtllm_counts *self, eplb_error *error)
{
    const rank_file *first = &self->files[0];
    for (int32_t r = 1; r < self->count; r++) {
        const rank_file *file = &self->files[r];
        if (file->ranks != 0 && file->ranks != first->ranks) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "%s: layer %d is counted by %d rank%s, but layer %d by %d in %s: "
                                  "a part of the ranks is no sum of all",
                                  file->reading.input.name, file->rank.file.tensors[0].layer,
                                  file->ranks, file->ranks == 1 ? "" : "s",
                                  first->rank.file.tensors[0].layer, first->ranks,
                                  first->reading.input.name);
        }
    }
    return EPLB_OK;
}

/* Reads all headers: the ranks are of one recording. */
static eplb_status open_ranks(trtllm_counts *self, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t r = 0; r < self->count && status == EPLB_OK; r++) {
        rank_file *file = &self->files[r];
        status = eplb_trtllm_rank_open(&file->rank, &file->reading, &file->reading.input, error);
        if (status == EPLB_OK) {
            status = find_stage(self, r, error);
        }
    }
    return status == EPLB_OK ? check_stages(self, error) : status;
}

/* Reads the number of experts of the recording, which are slots when they were balanced. */
static eplb_status read_num_experts(eplb_scanner *scanner, int64_t *experts, eplb_error *error)
{
    char key[EPLB_KEY_SIZE];
    bool first = true;
    bool more = true;
    bool found = false;
    eplb_status status = eplb_scan_expect(scanner, '{', "'{'", error);
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, &first, key, &more, error);
        if (status != EPLB_OK || !more) {
            break;
        }
        if (strcmp(key, "num_experts") != 0) {
            status = eplb_scan_skip(scanner, error);
        } else if (found) {
            status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "second key 'num_experts'");
        } else {
            found = true;
            status = eplb_scan_integer(scanner, "num_experts", EPLB_EXACT_INTEGER, experts, error);
        }
    }
    if (status == EPLB_OK && !found) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no key 'num_experts'");
    }
    return status == EPLB_OK ? eplb_scan_finish(scanner, error) : status;
}

static eplb_status check_meta_info(const trtllm_counts *self, const eplb_reading *reading,
                                   eplb_error *error)
{
    eplb_reading file;
    eplb_status status = eplb_reading_open_child(reading, META_INFO, &file, error);
    if (status != EPLB_OK) {
        return status;
    }
    int64_t experts = 0;
    eplb_scanner scanner;
    status = eplb_scanner_init(&scanner, &file.input, error);
    if (status == EPLB_OK) {
        status = eplb_input_skip_bom(&file.input, error);
    }
    if (status == EPLB_OK) {
        status = read_num_experts(&scanner, &experts, error);
    }
    const eplb_trtllm_rank *rank = &self->files[0].rank;
    if (status == EPLB_OK && experts != rank->experts) {
        status = eplb_error_set(
            error, EPLB_ERROR_DATA, "%s: num_experts %lld, but tensors of %d counts in %s",
            file.input.name, (long long)experts, rank->experts, rank->file.input->name);
    }
    eplb_scanner_close(&scanner);
    eplb_reading_close(&file);
    return status;
}

static eplb_status open_directory(trtllm_counts *self, const eplb_reading *reading,
                                  eplb_error *error)
{
    eplb_status status = open_files(self, reading, error);
    if (status == EPLB_OK) {
        status = open_ranks(self, error);
    }
    return status == EPLB_OK ? check_meta_info(self, reading, error) : status;
}

/* A file alone is of the rank that its name says. */
static eplb_status open_alone(trtllm_counts *self, eplb_reading *reading, eplb_error *error)
{
    const char *slash = strrchr(reading->input.name, '/');
    int32_t rank;
    if (is_rank(slash != NULL ? slash + 1 : reading->input.name, &rank)) {
        reading->rank = rank;
    }
    self->files = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self->files));
    if (self->files == NULL) {
        return eplb_out_of_memory(error);
    }
    rank_file *file = &self->files[self->count++];
    file->reading.hooks = file->reading.input.hooks = reading->hooks;
    return eplb_trtllm_rank_open(&file->rank, reading, &reading->input, error);
}

eplb_status eplb_trtllm_open_counts(eplb_reading *reading, eplb_error *error)
{
    trtllm_counts *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = reading->listing != NULL ? open_directory(self, reading, error)
                                                  : open_alone(self, reading, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t experts = (size_t)self->files[0].rank.experts;
    const eplb_array arrays[] = {EPLB_ARRAY(self->sums, experts),
                                 EPLB_ARRAY(self->counts, experts)};
    return eplb_alloc_arrays(&reading->hooks, arrays, 2, error);
}

static const eplb_tensor *next_tensor(const rank_file *file)
{
    const eplb_safetensors *tensors = &file->rank.file;
    return file->tensor < tensors->count ? &tensors->tensors[file->tensor] : NULL;
}

/* The first of the next tensors of all ranks; NULL at the end. */
static const eplb_tensor *find_first(const trtllm_counts *self)
{
    const eplb_tensor *first = NULL;
    for (int32_t r = 0; r < self->count; r++) {
        const eplb_tensor *next = next_tensor(&self->files[r]);
        bool is_first =
            next != NULL && (first == NULL || next->number < first->number ||
                             (next->number == first->number && next->layer < first->layer));
        first = is_first ? next : first;
    }
    return first;
}

/* Adds up the tensors of all ranks that have this row. */
static eplb_status add_ranks(trtllm_counts *self, const eplb_counts_row *row, eplb_error *error)
{
    memset(self->sums, 0, (size_t)row->length * sizeof(*self->sums));
    for (int32_t r = 0; r < self->count; r++) {
        rank_file *file = &self->files[r];
        const eplb_tensor *next = next_tensor(file);
        if (next == NULL || next->number != row->step || next->layer != row->layer) {
            continue;
        }
        eplb_status status =
            eplb_trtllm_rank_counts(&file->rank, file->tensor++, row, self->counts, error);
        if (status != EPLB_OK) {
            return status;
        }
        for (int32_t e = 0; e < row->length; e++) {
            self->sums[e] += self->counts[e];
        }
    }
    return EPLB_OK;
}

eplb_status eplb_trtllm_next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    trtllm_counts *self = reading->state;
    const eplb_tensor *tensor = find_first(self);
    if (tensor == NULL) {
        return EPLB_END;
    }
    *row = (eplb_counts_row){.step = tensor->number,
                             .layer = tensor->layer,
                             .length = self->files[0].rank.experts,
                             .counts = self->sums};
    return add_ranks(self, row, error);
}

void eplb_trtllm_close_counts(eplb_reading *reading)
{
    trtllm_counts *self = reading->state;
    if (self == NULL) {
        return;
    }
    for (int32_t r = 0; r < self->count; r++) {
        eplb_trtllm_rank_close(&self->files[r].rank);
        eplb_reading_close(&self->files[r].reading);
    }
    eplb_free(&reading->hooks, self->files);
    eplb_free(&reading->hooks, self->sums);
    eplb_free(&reading->hooks, self->counts);
    eplb_free(&reading->hooks, self);
}
