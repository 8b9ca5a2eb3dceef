/* SPDX-License-Identifier: MIT */
/* How often gpt-oss-20b chose its experts on 900 topics: many scenarios, of 7 to 440000 tokens. */
#include "generalise.h"

#include <string.h>

#include <eplb/format.h>

#include "bench.h"

#define GPT_TOPICS 900
#define GPT_LAYERS 24
#define GPT_EXPERTS 32
#define GPT_PLANNED 100

/* Tokens of each topic, and whether it is what the model thought (else what it answered). */
typedef struct gpt_topics {
    double tokens[GPT_TOPICS];
    bool thoughts[GPT_TOPICS];
} gpt_topics;

/* A line `idx,topic,phase,samples,tokens of a sample`. */
static void read_topic(const char *line, gpt_topics *topics, int32_t index)
{
    const char *thoughts = strstr(line, ",think,");
    const char *answers = strstr(line, ",answer,");
    const char *phase = thoughts != NULL ? thoughts : answers;
    double samples = 0.0;
    double tokens = 0.0;
    bench_require(phase != NULL &&
                      sscanf(strchr(phase + 1, ','), ",%lf,%lf", &samples, &tokens) == 2,
                  "a line of meta.csv has no phase or tokens");
    topics->tokens[index] = samples * tokens;
    topics->thoughts[index] = thoughts != NULL;
}

/* False when there is no such file. */
static bool read_topics(const bench_path *path, gpt_topics *topics)
{
    FILE *file = fopen(path->text, "r");
    if (file == NULL) {
        return false;
    }
    char line[1024];
    bench_require(fgets(line, sizeof(line), file) != NULL, "meta.csv is empty");
    for (int32_t index = 0; index < GPT_TOPICS; index++) {
        bench_require(fgets(line, sizeof(line), file) != NULL, "meta.csv has too few topics");
        read_topic(line, topics, index);
    }
    fclose(file);
    return true;
}

/* Frequencies times tokens: counts. */
static eplb_load *read_frequencies(const bench_path *path, const gpt_topics *topics)
{
    eplb_error error;
    eplb_load *load;
    eplb_counts_reader *reader;
    bench_check(eplb_load_create(&load, NULL, GPT_TOPICS, GPT_LAYERS, GPT_EXPERTS, &error), &error);
    bench_check(eplb_counts_open(&reader, NULL, path->text, NULL, &error), &error);
    eplb_counts_row row;
    eplb_status status;
    while ((status = eplb_counts_next(reader, &row, &error)) == EPLB_OK) {
        bench_require(row.step < GPT_TOPICS && row.length == GPT_EXPERTS,
                      "other topics or experts");
        double counts[GPT_EXPERTS];
        for (int32_t e = 0; e < GPT_EXPERTS; e++) {
            counts[e] = row.counts[e] * topics->tokens[row.step];
        }
        bench_check(eplb_load_set_row(load, (int32_t)row.step, row.layer, counts, &error), &error);
    }
    bench_check(status == EPLB_END ? EPLB_OK : status, &error);
    eplb_counts_close(&reader);
    return load;
}

/* Plans on topics of one kind, all over the file, and scores the others. */
static void add_kind_fold(generalise_study *study, const eplb_load *load, const gpt_topics *topics,
                          bool thoughts, int32_t kind_count)
{
    generalise_role roles[GPT_TOPICS];
    int32_t seen = 0;
    for (int32_t k = 0; k < GPT_TOPICS; k++) {
        bool is_kind = topics->thoughts[k] == thoughts;
        bool is_planned = seen * GPT_PLANNED / kind_count != (seen + 1) * GPT_PLANNED / kind_count;
        roles[k] = !is_kind ? GENERALISE_SCORE : is_planned ? GENERALISE_PLAN : GENERALISE_UNUSED;
        seen += is_kind;
    }
    generalise_add_fold(study, thoughts ? 1 : 2, load, roles);
}

bool generalise_gpt_oss(generalise_study *study)
{
    *study = (generalise_study){
        .bit = GENERALISE_GPT_OSS,
        .name = "gpt_oss_20b",
        .about = "plans on every ninth of 900 topics, the others are left out",
        .columns = {"800 left out", "answers left out", "thoughts left out"},
        .shapes = {{.gpus = 8, .slots_per_gpu = 5}},
    };
    bench_path frequencies = bench_shared("gpt_oss_20b/freq.npy");
    bench_path meta = bench_shared("gpt_oss_20b/meta.csv");
    static gpt_topics topics;
    if (!bench_is_there(&frequencies) || !read_topics(&meta, &topics)) {
        return false;
    }
    eplb_load *load = read_frequencies(&frequencies, &topics);
    generalise_role roles[GPT_TOPICS];
    for (int32_t k = 0; k < GPT_TOPICS; k++) {
        roles[k] = k % (GPT_TOPICS / GPT_PLANNED) == 0 ? GENERALISE_PLAN : GENERALISE_SCORE;
    }
    generalise_add_fold(study, 0, load, roles);
    int32_t thoughts = 0;
    for (int32_t k = 0; k < GPT_TOPICS; k++) {
        thoughts += topics.thoughts[k];
    }
    add_kind_fold(study, load, &topics, true, thoughts);
    add_kind_fold(study, load, &topics, false, GPT_TOPICS - thoughts);
    eplb_load_destroy(&load);
    return true;
}
