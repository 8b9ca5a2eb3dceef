/* SPDX-License-Identifier: MIT */
/* How the engines are told to load a placement file. */
#include <string.h>

#include "plan_report.h"

typedef struct launch_hint {
    const char *format;
    const char *before; /* the file's path */
    const char *after;
    bool redundant; /* the number of redundant experts follows */
} launch_hint;

static const launch_hint hints[] = {
    {"sglang", "Load it in SGLang: --init-expert-location ", " --ep-num-redundant-experts ", true},
    {"trtllm",
     "Load it in TensorRT-LLM: in the YAML of extra LLM API options, moe_config: "
     "{load_balancer: ",
     "}", false},
    {"ascend",
     "Load it in vLLM-Ascend: --additional-config '{\"eplb_config\": "
     "{\"expert_map_path\": \"",
     "\"}}'", false},
    {"vllm", "Written to ",
     "; loading a map into vLLM is an open change there "
     "(vllm-project/vllm#49572)",
     false},
    {"vllm_mapping", "Written to ",
     "; loading a mapping into vLLM is an open change there "
     "(vllm-project/vllm#41141)",
     false},
};

/* What stands for itself in a shell, in JSON and in YAML. */
static bool is_plain(const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_./+=:@%-";
    return path[strspn(path, plain)] == '\0';
}

void print_launch_hint(const plan_report *self, FILE *out)
{
    static const launch_hint other = {"", "Written to ", ".", false};
    const launch_hint *hint = &other;
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        if (strcmp(hints[i].format, eplb_format_name(self->format)) == 0) {
            hint = &hints[i];
        }
    }
    bool is_stdout = strcmp(self->out, "-") == 0;
    const char *path = !is_stdout && is_plain(self->out) ? self->out : "FILE";
    if (is_stdout && strcmp(hint->before, other.before) == 0) {
        path = "standard output";
    }
    fprintf(out, "%s%s%s", hint->before, path, hint->after);
    if (hint->redundant) {
        fprintf(out, "%d", self->slots - self->experts);
    }
    fputc('\n', out);
}
