/* SPDX-License-Identifier: MIT */
/* What engines do with broken files: what is documented or in public trackers, and nothing else. */
#include <string.h>

#include "format/engine.h"

typedef struct explanation {
    const char *engine;
    int32_t kind;
    const char *text;
} explanation;

static const explanation explanations[] = {
    {"sglang", EPLB_VIOLATION_MISSING_EXPERT, "SGLang fails with a ZeroDivisionError."},
    {"sglang", EPLB_VIOLATION_EMPTY_SLOT,
     "SGLang silently takes -1 for the last expert: the slot becomes a replica of that one."},
    {"sglang", EPLB_VIOLATION_DUPLICATE,
     "SGLang sends a GPU's own tokens to the first copy there, and those of other GPUs to either: "
     "all end on the one GPU, and the slot is lost for balance. The classical algorithm makes such "
     "maps (deepseek-ai/EPLB#22)."},
    {"sglang", EPLB_ENGINE_LAYER_COUNT,
     "SGLang accepts a wrong number of layers silently. It wants a row for each hidden layer, "
     "dense ones too: with rows for MoE layers only, layers get the rows of others."},
    {"sglang", EPLB_ENGINE_UNREADABLE,
     "SGLang takes the file's keys for arguments: any beside physical_to_logical_map is a "
     "TypeError at start. A wrong number of slots it accepts silently."},
    {"trtllm", EPLB_VIOLATION_MISSING_EXPERT,
     "TensorRT-LLM refuses the file at start: every expert must be in the list of each layer."},
    {"trtllm", EPLB_VIOLATION_DUPLICATE,
     "TensorRT-LLM's checks at start do not look for it. An expert's replicas take its tokens in "
     "turn, so the GPU gets the tokens of both copies and the second one relieves nobody."},
    {"trtllm", EPLB_ENGINE_MISSING_LAYER,
     "TensorRT-LLM refuses the file at start: every MoE layer must be present."},
    {"trtllm", EPLB_ENGINE_EXPERT_LIMIT, "TensorRT-LLM balances at most 1024 experts."},
    {"trtllm", EPLB_ENGINE_SLOT_LIMIT,
     "TensorRT-LLM's slot ids have 16 bits: slots from 65536 on have none."},
    {"trtllm", EPLB_ENGINE_UNEVEN_SLOTS,
     "TensorRT-LLM refuses the file at start: num_slots must be divisible by the number of GPUs "
     "(EP size), and each list must be of that length."},
    {"trtllm", EPLB_ENGINE_UNREADABLE,
     "TensorRT-LLM refuses at start what is not its form: num_slots divisible by the number of "
     "GPUs (EP size) and not below the experts, a list of num_slots experts for each MoE layer, "
     "integers as keys."},
    {"vllm", EPLB_VIOLATION_MISSING_EXPERT,
     "vLLM loads maps by an open change only, which refuses one without every expert "
     "(vllm-project/vllm#49572)."},
    {"vllm", EPLB_VIOLATION_DUPLICATE,
     "vLLM wastes the slot, and weights have been wrong after a rebalance from such a map "
     "(vllm-project/vllm#18343)."},
    {"vllm", EPLB_ENGINE_LAYER_COUNT,
     "vLLM loads maps by an open change only, which refuses other dimensions than one list, or one "
     "for each MoE layer (vllm-project/vllm#49572)."},
    {"vllm", EPLB_ENGINE_UNREADABLE,
     "vLLM loads maps by an open change only, which checks dimensions and the range of the ids "
     "before it moves any weights (vllm-project/vllm#49572)."},
    {"ascend", EPLB_VIOLATION_DUPLICATE,
     "vLLM-Ascend misroutes tokens silently: redundant experts must be on different devices "
     "(vllm-project/vllm-ascend#1116)."},
    {"ascend", EPLB_ENGINE_UNEVEN_SLOTS,
     "vLLM-Ascend needs equally many experts on all devices; newer versions check it "
     "(vllm-project/vllm-ascend#8710)."},
    {"ascend", EPLB_ENGINE_UNREADABLE,
     "vLLM-Ascend ignores the ids of layers and devices and goes by the order of the lists: a file "
     "that is not sorted or not complete is silently taken for another map."},
};

const char *eplb_engine_explain(const eplb_engine *engine, int32_t kind)
{
    for (size_t i = 0; engine != NULL && i < sizeof(explanations) / sizeof(explanations[0]); i++) {
        if (explanations[i].kind == kind && strcmp(explanations[i].engine, engine->name) == 0) {
            return explanations[i].text;
        }
    }
    return NULL;
}
