/* SPDX-License-Identifier: MIT */
#include "formats.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { COUNTS = FORMATS_LAYERS * FORMATS_EXPERTS };

/* Counts of a step: some 4000 tokens, top-8, experts of different popularity. */
typedef struct drawing {
    eplb_random random;
    double popularity[COUNTS];
    uint32_t counts[COUNTS];
    int64_t step; /* of the counts; -1: none yet */
    double tokens;
} drawing;

static drawing *begin_drawing(void)
{
    drawing *self = bench_alloc(1, sizeof(*self));
    eplb_random_seed(&self->random, 1);
    for (int i = 0; i < COUNTS; i++) {
        self->popularity[i] = 128.0 * exp(0.7 * bench_normal(&self->random));
    }
    self->step = -1;
    return self;
}

static void draw_step(drawing *self)
{
    for (int i = 0; i < COUNTS; i++) {
        double share = 0.5 + eplb_random_unit(&self->random);
        self->counts[i] = (uint32_t)(self->popularity[i] * share);
        self->tokens += self->counts[i];
    }
    self->step++;
}

static double end_drawing(drawing *self)
{
    double tokens = self->tokens;
    free(self);
    return tokens;
}

static void write_list(FILE *out, const uint32_t *counts)
{
    for (int e = 0; e < FORMATS_EXPERTS; e++) {
        fprintf(out, "%s%u", e == 0 ? "[" : ",", counts[e]);
    }
    fputc(']', out);
}

static double write_jsonl(const formats_log *log, FILE *out, int64_t bytes)
{
    (void)log;
    drawing *self = begin_drawing();
    while (ftello(out) < bytes) {
        draw_step(self);
        for (int l = 0; l < FORMATS_LAYERS; l++) {
            fprintf(out, "{\"step\":%lld,\"layer\":%d,\"counts\":", (long long)self->step, l);
            write_list(out, self->counts + l * FORMATS_EXPERTS);
            fputs("}\n", out);
        }
    }
    return end_drawing(self);
}

static double write_sglang(const formats_log *log, FILE *out, int64_t bytes)
{
    (void)log;
    drawing *self = begin_drawing();
    fputs("{\"logical_count\": [", out);
    while (ftello(out) < bytes) {
        draw_step(self);
        fputs(self->step == 0 ? "[" : ", [", out);
        for (int l = 0; l < FORMATS_LAYERS; l++) {
            fputs(l == 0 ? "" : ", ", out);
            write_list(out, self->counts + l * FORMATS_EXPERTS);
        }
        fputc(']', out);
    }
    fputs("]}", out);
    return end_drawing(self);
}

static double write_csv(const formats_log *log, FILE *out, int64_t bytes)
{
    (void)log;
    drawing *self = begin_drawing();
    fputs("step,layer,expert,tokens\n", out);
    while (ftello(out) < bytes) {
        draw_step(self);
        for (int i = 0; i < COUNTS; i++) {
            fprintf(out, "%lld,%d,%d,%u\n", (long long)self->step, i / FORMATS_EXPERTS,
                    i % FORMATS_EXPERTS, self->counts[i]);
        }
    }
    return end_drawing(self);
}

static size_t item_size(const formats_log *log)
{
    return (size_t)(log->type[2] - '0');
}

/* Steps of items that have `bytes`. */
static int64_t steps_of(const formats_log *log, int64_t bytes)
{
    int64_t step = (int64_t)item_size(log) * COUNTS;
    return (bytes + step - 1) / step;
}

/* Writes items in the order of bytes of this machine. */
static double write_items(const formats_log *log, FILE *out, int64_t steps)
{
    drawing *self = begin_drawing();
    while (self->step < steps - 1) {
        draw_step(self);
        for (int i = 0; i < COUNTS; i++) {
            int64_t wide = self->counts[i];
            double real = self->counts[i];
            const void *item = log->type[1] == 'f'   ? (const void *)&real
                               : item_size(log) == 8 ? (const void *)&wide
                                                     : (const void *)&self->counts[i];
            fwrite(item, item_size(log), 1, out);
        }
    }
    return end_drawing(self);
}

static double write_npy(const formats_log *log, FILE *out, int64_t bytes)
{
    int64_t steps = steps_of(log, bytes);
    char dictionary[256];
    snprintf(dictionary, sizeof(dictionary),
             "{'descr': '%s', 'fortran_order': False, 'shape': (%lld, %d, %d), }", log->type,
             (long long)steps, FORMATS_LAYERS, FORMATS_EXPERTS);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, out);
    fprintf(out, "%-117s\n", dictionary);
    return write_items(log, out, steps);
}

/* The header of safetensors: one tensor for each layer of each iteration. */
static double write_trtllm(const formats_log *log, FILE *out, int64_t bytes)
{
    int64_t steps = steps_of(log, bytes);
    int64_t row = FORMATS_EXPERTS * (int64_t)item_size(log);
    uint64_t length = 0;
    fwrite(&length, sizeof(length), 1, out);
    for (int64_t i = 0; i < steps * FORMATS_LAYERS; i++) {
        fprintf(
            out, "%s\"%lld_%lld\":{\"dtype\":\"I64\",\"shape\":[%d],\"data_offsets\":[%lld,%lld]}",
            i == 0 ? "{" : ",", (long long)(i / FORMATS_LAYERS), (long long)(i % FORMATS_LAYERS),
            FORMATS_EXPERTS, (long long)(i * row), (long long)((i + 1) * row));
    }
    fputc('}', out);
    while (ftello(out) % 8 != 0) {
        fputc(' ', out);
    }
    length = (uint64_t)ftello(out) - sizeof(length);
    bench_require(fseeko(out, 0, SEEK_SET) == 0, "cannot go back in a file");
    fwrite(&length, sizeof(length), 1, out);
    bench_require(fseeko(out, 0, SEEK_END) == 0, "cannot go on in a file");
    return write_items(log, out, steps);
}

const formats_log formats_logs[] = {
    {.name = "log.jsonl", .write = write_jsonl, .python = "jsonl"},
    {.name = "log.csv", .write = write_csv, .python = "csv"},
    {.name = "sglang.json", .write = write_sglang, .python = "json"},
    {.name = "int32.npy", .write = write_npy, .type = "<i4", .python = "numpy"},
    {.name = "int64.npy", .write = write_npy, .type = "<i8", .python = "numpy"},
    {.name = "float64.npy", .write = write_npy, .type = "<f8", .python = "numpy"},
    {.name = "rank0.safetensors", .directory = "trtllm", .write = write_trtllm, .type = "<i8"},
#ifdef HAVE_ZIP
    {.name = "int32.npz",
     .write = write_npy,
     .type = "<i4",
     .pack = formats_pack_npz,
     .python = "numpy"},
#endif
#ifdef HAVE_ZLIB
    {.name = "log.jsonl.gz",
     .write = write_jsonl,
     .pack = formats_pack_gzip,
     .is_stream = true,
     .python = "jsonl"},
    {.name = "log.csv.gz",
     .write = write_csv,
     .pack = formats_pack_gzip,
     .is_stream = true,
     .python = "csv"},
#endif
#ifdef HAVE_ZSTD
    {.name = "log.jsonl.zst", .write = write_jsonl, .pack = formats_pack_zstd, .is_stream = true},
    {.name = "log.csv.zst", .write = write_csv, .pack = formats_pack_zstd, .is_stream = true},
#endif
    {.name = NULL},
};

static bench_path join(const char *directory, const char *name)
{
    bench_path path;
    int length = snprintf(path.text, sizeof(path.text), "%s/%s", directory, name);
    bench_require(length > 0 && (size_t)length < sizeof(path.text), "a path is too long");
    return path;
}

static double write_file(const formats_log *log, const bench_path *path, int64_t bytes)
{
    FILE *out = fopen(path->text, "wb");
    bench_require(out != NULL, "cannot make a file");
    double tokens = log->write(log, out, bytes);
    int bad = ferror(out);
    bench_require(fclose(out) == 0 && bad == 0, "cannot write a file: is the disk full?");
    return tokens;
}

/* What TensorRT-LLM says of all ranks. */
static void write_meta_info(const formats_file *made)
{
    bench_path path = join(made->opened.text, "meta_info.json");
    FILE *out = fopen(path.text, "wb");
    bench_require(out != NULL, "cannot make a file");
    fprintf(out, "{\"num_experts\": %d, \"num_experts_per_token\": 8}", FORMATS_EXPERTS);
    bench_require(fclose(out) == 0, "cannot write a file");
}

formats_file formats_make(const formats_log *log, const char *directory, int64_t bytes)
{
    formats_file made;
    if (log->directory != NULL) {
        made.opened = join(directory, log->directory);
        bench_require(mkdir(made.opened.text, 0700) == 0, "cannot make a directory");
        made.file = join(made.opened.text, log->name);
        write_meta_info(&made);
    } else {
        made.file = made.opened = join(directory, log->name);
    }
    bench_path plain = log->pack != NULL ? join(directory, "plain") : made.file;
    made.tokens = write_file(log, &plain, bytes);
    if (log->pack != NULL) {
        log->pack(&plain, &made.file);
        (void)unlink(plain.text);
    }
    struct stat status;
    bench_require(stat(made.file.text, &status) == 0, "a file is not there");
    made.megabytes = 1e-6 * (double)status.st_size;
    return made;
}

void formats_remove(const formats_log *log, const formats_file *made)
{
    (void)unlink(made->file.text);
    if (log->directory != NULL) {
        bench_path meta_info = join(made->opened.text, "meta_info.json");
        (void)unlink(meta_info.text);
        (void)rmdir(made->opened.text);
    }
}
