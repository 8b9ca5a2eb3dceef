/* SPDX-License-Identifier: MIT */
/* What the command refuses: wrong options and broken files. Each leaves one line on standard error,
 * nothing on standard output and no file behind. */
#include "run.h"

#define SHAPE " --gpus 4 --slots 8 --out new"
#define GOOD "plan --load good.jsonl" SHAPE
#define FROM GOOD " --current map.json"
#define BY_MEMORY "plan --load good.jsonl --gpus 4 --out new"
#define DIFF "diff map.json map.json --gpus 4"
#define CONVERT "convert good.jsonl"
#define SWEEP "sweep --load good.jsonl --gpus 2,4 --redundant 0,8"

static const run_refusal wrong_commands[] = {
    {"", 2, "a command is missing"},
    {"plam", 2, "unknown command 'plam'; did you mean 'plan'?"},
    {"--verbose", 2, "unknown option '--verbose'"},
    {"help nothing", 2, "unknown command 'nothing'"},
    {"plan", 2, "--load SOURCE is missing"},
    {"plan --load good.jsonl --slots 8", 2, "--gpus N is missing"},
    {"plan --load good.jsonl --gpus 4", 2,
     "--slots P, --redundant R or --gpu-memory LIST is missing"},
    {GOOD " --redundant 0", 2, "--slots and --redundant exclude each other"},
    {GOOD " stray", 2, "unexpected argument 'stray'"},
    {GOOD " -- --json", 2, "unexpected argument '--json'"},
    {GOOD " -j", 2, "unknown option '-j'"},
    {GOOD " --gpu 4", 2, "unknown option '--gpu'; did you mean '--gpus'?"},
    {GOOD " --gpus 4", 2, "--gpus is given twice"},
    {GOOD " --effort", 2, "--effort needs a value"},
    {GOOD " --current --json", 2, "--current needs a value FILE"},
    {"plan --load good.jsonl --gpus 4 --slots 8 --to sglang", 2, "--to 'sglang' needs --out"},
    {"plan --load good.jsonl --gpus 4 --slots 8 --json --out -", 2, "--json and --out -"},
    {"plan --load - --load -" SHAPE, 2, "standard input can be read once"},
    {"plan --load - --current -" SHAPE, 2, "standard input can be read once"},
    {GOOD " --target-imbalance 1.1", 2, "--target-imbalance goes with --current"},
    {GOOD " --max-copies 0", 2, "--max-copies goes with --current"},
    {GOOD " --copy-price 0", 2, "--copy-price goes with --current"},
    {GOOD " --interval 10", 2, "--interval goes with --current"},
    {GOOD " --stall 0", 2, "--stall goes with --current"},
    {FROM " --max-copies 1 --algorithm eplb", 2, "--max-copies and --algorithm eplb exclude"},
    {FROM " --min-gain 0 --gpus-per-node 2 --spread-nodes", 2,
     "--min-gain and --spread-nodes exclude each other"},
    {FROM " --max-copies-per-layer 1 --gpus-per-node 2 --node-cost 0", 2,
     "--max-copies-per-layer and --node-cost exclude each other"},
    {FROM " --max-copies-per-gpu 1 --gpus-per-node 2 --hierarchy groups --groups 2", 2,
     "--max-copies-per-gpu and --hierarchy groups exclude each other"},
    {FROM " --target-imbalance 1 --layer-budget adaptive", 2,
     "--target-imbalance and --layer-budget adaptive exclude each other"},
    {"diff", 2, "OLD is missing"},
    {"diff map.json --gpus 4", 2, "NEW is missing"},
    {"diff map.json map.json map.json --gpus 4", 2, "unexpected argument 'map.json'"},
    {"diff - - --gpus 4", 2, "standard input can be read once"},
    {DIFF " --counted-under map.json", 2, "--counted-under goes with --load"},
    {DIFF " --slices 2", 2, "--slices goes with --load"},
    {DIFF " --objective sum", 2, "--objective goes with --load"},
    {DIFF " --stall 0", 2, "--stall goes with --load"},
    {"validate", 2, "FILE is missing"},
    {"validate map.json map.json --gpus 4", 2, "unexpected argument 'map.json'"},
    {BY_MEMORY " --gpu-memory 1GiB", 2, "--gpu-memory needs --expert-bytes SIZE or --model FILE"},
    {GOOD " --gpu-memory 1GiB --expert-bytes 1k", 2, "--slots and --gpu-memory exclude each other"},
    {BY_MEMORY " --redundant 8 --gpu-memory 1GiB --expert-bytes 1k", 2,
     "--redundant and --gpu-memory exclude each other"},
    {BY_MEMORY " --gpu-memory 1G,2G,3G --expert-bytes 1k", 2, "--gpu-memory: 3 sizes for 4 GPUs"},
    {GOOD " --reserve 1k", 2, "--reserve goes with --gpu-memory"},
    {GOOD " --ilp-nodes 5", 2, "--ilp-nodes goes with --ilp auto or on"},
    {GOOD " --ilp on --algorithm eplb", 2, "--ilp does not go with --algorithm eplb"},
    {GOOD " --ilp on --algorithm weighted", 2, "--ilp does not go with --algorithm weighted"},
    {GOOD " --ilp auto --gpus-per-node 2 --spread-nodes", 2,
     "--ilp does not go with --spread-nodes"},
    {GOOD " --ilp auto --gpus-per-node 2 --node-cost 1", 2, "--ilp does not go with --node-cost"},
    {GOOD " --ilp auto --gpus-per-node 2 --hierarchy groups --groups 2", 2,
     "--ilp does not go with --hierarchy groups"},
    {"sweep", 2, "--load SOURCE is missing"},
    {"sweep --load good.jsonl", 2, "--gpus LIST is missing"},
    {"sweep --load good.jsonl --gpus 4", 2, "--redundant LIST is missing"},
    {"sweep --load good.jsonl --gpus none --redundant 8", 2, "--gpus LIST is missing"},
    {"sweep --load good.jsonl --gpus 1-200 --redundant 0-50", 2,
     "10200 combinations, at most 10000"},
    {"sweep --load - --load - --gpus 4 --redundant 8", 2, "standard input can be read once"},
    {"synth --topk 9 --experts 8 --out new", 2, "--topk 9"},
    {"synth --first-layer 1000 --out new", 2,
     "58 layers from there end at layer 1057, above the 1023"},
    {"synth --groups 3 --experts 8 --topk 1 --out new", 2, "--groups 3"},
    {"synth --domains 3 --steps 2 --out new", 2, "--domains 3"},
};

/* At least one for each option of each command. */
static const run_refusal wrong_values[] = {
    {GOOD " --counted-under missing.json", 1, "missing.json: cannot open"},
    {GOOD " --counted-under -", 2, "--counted-under -: give a file"},
    {GOOD " --array=", 2, "--array '': empty"},
    {SWEEP " --counted-under good.jsonl", 1, "good.jsonl: the content is of no known format"},
    {SWEEP " --array=", 2, "--array '': empty"},
    {DIFF " --load good.jsonl --counted-under missing.json", 1, "missing.json: cannot open"},
    {DIFF " --load good.jsonl --array=", 2, "--array '': empty"},
    {CONVERT " --out=", 2, "--out '': empty"},
    {CONVERT " --out new --to nothing", 2, "--to 'nothing': not one of"},
    {CONVERT " --out new --from nothing", 2, "--from 'nothing': not one of"},
    {CONVERT " --out new --what maps", 2, "--what 'maps': not one of counts|placement"},
    {CONVERT " --out new --counted-under missing.json", 1, "missing.json: cannot open"},
    {CONVERT " --out new --array=", 2, "--array '': empty"},
    {CONVERT " --out new --gpus 0", 2, "--gpus '0': not a whole number"},
    {CONVERT " --out new --experts x", 2, "--experts 'x': not a whole number"},
    {CONVERT " --out new --dense-layers 2-1", 2, "--dense-layers '2-1'"},
    {CONVERT " --out new --model missing.json", 1, "missing.json: cannot open"},
    {CONVERT " --out new --draft-layers 65536", 2, "--draft-layers '65536'"},
    {CONVERT " --out new --draft-layers 1", 1, "good.jsonl: "},
    {CONVERT " --without-draft-layers=1", 2, "--without-draft-layers takes no value"},
    {CONVERT " --list=1", 2, "--list takes no value"},
    {CONVERT " --json=1", 2, "--json takes no value"},
    {"plan --load= --gpus 4 --slots 8 --out new", 2, "--load ''"},
    {"plan --load missing.jsonl" SHAPE, 1, "missing.jsonl: "},
    {"plan --load ." SHAPE, 1, "./map.json: "},
    {"plan --load good.jsonl:0" SHAPE, 1, "the weight '0' is not"},
    {"plan --load good.jsonl,good.jsonl" SHAPE, 1, "good.jsonl twice"},
    {GOOD " --from josnl", 2, "--from 'josnl': not one of"},
    {GOOD " --from ascend", 2, "--from 'ascend': not one of"},
    {GOOD " --from csv", 1, "good.jsonl:1: "},
    {GOOD " --experts 0", 2, "--experts '0'"},
    {GOOD " --experts 65537", 2, "--experts '65537'"},
    {GOOD " --experts 7", 1, "good.jsonl"},
    {GOOD " --slices 0", 2, "--slices '0'"},
    {GOOD " --objective min", 2, "--objective 'min': not one of"},
    {GOOD " --dead-gpus 99", 2, "--dead-gpus: there is no GPU 99"},
    {GOOD " --dead-gpus x", 2, "--dead-gpus 'x'"},
    {GOOD " --layer-budget some", 2, "--layer-budget 'some': not one of uniform|adaptive"},
    {"plan --load good.jsonl --gpus 4 --redundant 4 --layer-budget adaptive", 2,
     "--layer-budget adaptive goes with --gpu-memory or"},
    {GOOD " --lost-experts maybe", 2, "--lost-experts 'maybe': not one of"},
    {FROM " --target-imbalance 0.9", 2, "--target-imbalance '0.9'"},
    {FROM " --target-imbalance nan", 2, "--target-imbalance 'nan'"},
    {FROM " --max-copies -1", 2, "--max-copies '-1'"},
    {FROM " --max-copies-per-layer x", 2, "--max-copies-per-layer 'x'"},
    {FROM " --max-copies-per-gpu 1.5", 2, "--max-copies-per-gpu '1.5'"},
    {FROM " --min-gain -0.1", 2, "--min-gain '-0.1'"},
    {FROM " --copy-price inf", 2, "--copy-price 'inf'"},
    {FROM " --bandwidth 400G", 2, "--bandwidth needs two numbers, such as 400G,50G, not 1"},
    {FROM " --bandwidth 0,50G", 2, "--bandwidth '0'"},
    {FROM " --bandwidth 400X,50G", 2, "--bandwidth '400X'"},
    {FROM " --interval 0", 2, "--interval '0'"},
    {FROM " --step-time 0", 2, "--step-time '0'"},
    {FROM " --stall 1.5", 2, "--stall '1.5'"},
    {GOOD " --lost-experts fail", 2, "--lost-experts goes with --current"},
    {GOOD " --min-replicas 0", 2, "--min-replicas '0'"},
    {GOOD " --max-replicas 0", 2, "--max-replicas '0'"},
    {GOOD " --spread-nodes", 2, "--spread-nodes needs --gpus-per-node"},
    {GOOD " --spread-nodes=1", 2, "--spread-nodes"},
    {GOOD " --dense-layers 2-1", 2, "--dense-layers '2-1'"},
    {GOOD " --dense-layers 1,1", 2, "--dense-layers '1,1'"},
    {GOOD " --dense-layers 0,,2", 2, "--dense-layers '0,,2'"},
    {GOOD " --dense-layers 1-", 2, "--dense-layers '1-'"},
    {GOOD " --dense-layers=-1", 2, "--dense-layers '-1'"},
    {GOOD " --dense-layers 0-99999999999", 2, "--dense-layers '0-99999999999'"},
    {GOOD " --dense-layers 0,5", 1, "--dense-layers: layer 5"},
    {GOOD " --draft-layers=-1", 2, "--draft-layers '-1'"},
    {GOOD " --draft-layers one", 2, "--draft-layers 'one'"},
    {GOOD " --draft-layers 1", 2, "sglang can mark at most 0 layers as the draft model's"},
    {"plan --load good.jsonl --gpus 0 --slots 8 --out new", 2, "--gpus '0'"},
    {"plan --load good.jsonl --gpus -4 --slots 8 --out new", 2, "--gpus '-4'"},
    {"plan --load good.jsonl --gpus 4x --slots 8 --out new", 2, "--gpus '4x'"},
    {"plan --load good.jsonl --gpus 4.0 --slots 8 --out new", 2, "--gpus '4.0'"},
    {"plan --load good.jsonl --gpus= --slots 8 --out new", 2, "--gpus ''"},
    {"plan --load good.jsonl --gpus 99999999999999999999 --slots 8 --out new", 2,
     "--gpus '99999999999999999999'"},
    {GOOD " --gpus-per-node 0", 2, "--gpus-per-node '0'"},
    {"plan --load good.jsonl --gpus 4 --slots 0x8 --out new", 2, "--slots '0x8'"},
    {"plan --load good.jsonl --gpus 4 --slots 4 --out new", 1, "8 (0 redundant)"},
    {"plan --load good.jsonl --gpus 4 --slots 64 --out new", 1, "32 can be filled"},
    {"plan --load good.jsonl --gpus 4 --slots 10 --out new", 1, "8 and 12"},
    {"plan --load good.jsonl --gpus 4 --redundant -1 --out new", 2, "--redundant '-1'"},
    {"plan --load good.jsonl --gpus 4 --redundant 1 --out new", 1, "1 redundant experts: 9 slots"},
    {GOOD " --current=", 2, "--current ''"},
    {GOOD " --current missing.json", 1, "missing.json: "},
    {GOOD " --current good.jsonl", 1, "good.jsonl: "},
    {GOOD " --algorithm serach", 2,
     "--algorithm 'serach': not one of search|eplb|weighted; did you mean"},
    {GOOD " --algorithm eplb --groups 0", 2, "--groups '0'"},
    {GOOD " --groups 2", 2, "--groups needs --hierarchy groups or --algorithm eplb"},
    {GOOD " --groups 2 --hierarchy none", 2, "--groups needs --hierarchy groups"},
    {GOOD " --hierarchy groups", 2, "--hierarchy groups needs --groups N"},
    {GOOD " --hierarchy group", 2, "--hierarchy 'group': not one of none|groups; did you mean"},
    {GOOD " --hierarchy groups --groups 2", 2, "--groups needs --gpus-per-node"},
    {GOOD " --hierarchy groups --groups 3 --gpus-per-node 2", 1,
     "plan with groups: 3 groups do not divide 8 experts"},
    {GOOD " --hierarchy groups --groups 4 --gpus-per-node 3", 1, "4 GPUs are not on 2 equal nodes"},
    {GOOD " --hierarchy groups --groups 2 --gpus-per-node 2 --spread-nodes", 1,
     "plan with groups: it knows no limits of replicas, pins or nodes"},
    {GOOD " --hierarchy groups --groups 2 --gpus-per-node 2 --node-cost 1", 1, "price of traffic"},
    {GOOD " --hierarchy groups --groups 2 --gpus-per-node 2 --dead-gpus 1", 1,
     "all GPUs must be alive"},
    {GOOD " --node-cost 1", 2, "--node-cost needs --gpus-per-node"},
    {GOOD " --node-cost -1 --gpus-per-node 2", 2,
     "--node-cost '-1': not a number in 0..1000000000"},
    {GOOD " --node-cost much --gpus-per-node 2", 2, "--node-cost 'much': not a number"},
    {GOOD " --node-cost nan --gpus-per-node 2", 2, "--node-cost 'nan': not a number"},
    {GOOD " --node-cost 1 --gpus-per-node 2 --algorithm eplb", 1, "algorithm eplb: it knows no"},
    {GOOD " --groups 2 --algorithm eplb", 2, "--groups needs --gpus-per-node"},
    {GOOD " --groups 3 --algorithm eplb --gpus-per-node 2", 1, "3 groups"},
    {GOOD " --repair=yes", 2, "--repair takes no value, got 'yes'"},
    {GOOD " --ilp yes", 2, "--ilp 'yes': not one of off|auto|on"},
    {GOOD " --ilp on --ilp-nodes -1", 2, "--ilp-nodes '-1'"},
    {GOOD " --effort 10", 2, "--effort '10': not a whole number in 1..9"},
    {GOOD " --threads 0", 2, "--threads '0'"},
    {GOOD " --weights=", 2, "--weights ''"},
    {GOOD " --weights no/such/directory", 1, "no/such/directory: "},
    {"plan --load good.jsonl --gpus 4 --slots 8 --out=", 2, "--out ''"},
    {"plan --load good.jsonl --gpus 4 --slots 8 --out .", 1, ".: "},
    {"plan --load good.jsonl --gpus 4 --slots 8 --out no/such/directory", 1, "no/such/directory: "},
    {GOOD " --to slgang", 2, "--to 'slgang': not one of"},
    {GOOD " --to csv", 2, "--to 'csv': not one of"},
    {GOOD " --json=1", 2, "--json takes no value, got '1'"},
    {GOOD " --detailed-exitcode=1", 2, "--detailed-exitcode takes no value"},
    {BY_MEMORY " --expert-bytes 1k --gpu-memory 4", 1,
     "3.725e-09 GiB of a GPU less 0 GiB in reserve do not hold one expert of each of 2 layers"},
    {BY_MEMORY " --expert-bytes 1k --gpu-memory 2k", 1,
     "the memory of 4 GPUs holds 4 slots of a layer for 8 experts: 2 slots a GPU need 3.906 KiB"},
    {BY_MEMORY " --expert-bytes 1k --gpu-memory 4k,4k,4k,1k", 1, "GPU 3: "},
    {BY_MEMORY " --expert-bytes 1k --gpu-memory 9k --reserve 8k", 1, "in reserve do not hold"},
    {BY_MEMORY " --expert-bytes 1k --gpu-memory 9k --reserve -1", 2, "--reserve '-1': not a size"},
    {BY_MEMORY " --expert-bytes 0 --gpu-memory 9k", 2, "--expert-bytes '0': not a size such as"},
    {BY_MEMORY " --expert-bytes 1k --gpu-memory 0", 2, "--gpu-memory '0': not a size"},
    {BY_MEMORY " --expert-bytes 1k --gpu-memory 9k,,9k,9k", 2, "--gpu-memory '': not a size"},
    {BY_MEMORY " --expert-bytes 1k --gpu-memory 9KIB", 2, "--gpu-memory '9KIB': not a size"},
    {BY_MEMORY " --expert-bytes 1k --gpu-memory 4k,6k,4k,4k --to sglang", 1,
     "sglang cannot carry GPUs with different numbers of slots"},
    {GOOD " --model missing.json", 1, "missing.json: cannot open"},
    {GOOD " --model good.jsonl", 1, "good.jsonl: not a JSON document"},
    {GOOD " --model map.json", 1, "map.json: there is no 'n_routed_experts'"},
    {GOOD " --pin 0:1", 2, "--pin '0:1': not LAYER:EXPERT:GPU"},
    {GOOD " --pin 0:all:1", 2, "--pin '0:all:1'"},
    {GOOD " --pin 0:1:2:3", 2, "--pin '0:1:2:3'"},
    {GOOD " --pin -1:1:2", 2, "--pin '-1:1:2'"},
    {GOOD " --pin 0:1:0 --pin 0::0", 2, "--pin '0::0'"},
    {GOOD " --pin 2:1:0", 1, "--pin '2:1:0': the loads have no layer 2, but 0 to 1"},
    {GOOD " --pin 0:8:0", 1, "--pin '0:8:0': there is no expert 8 of 8"},
    {GOOD " --pin 0:1:4", 1, "--pin '0:1:4': there is no GPU 4 of 4"},
    {GOOD " --pin all:0:all", 1, "plan"},
    {SWEEP " --load missing.jsonl", 1, "missing.jsonl: "},
    {"sweep --load good.jsonl --redundant 8 --gpus 0", 2, "--gpus '0': '0' is not a number or"},
    {"sweep --load good.jsonl --redundant 8 --gpus 2-8x1", 2, "--gpus '2-8x1'"},
    {"sweep --load good.jsonl --redundant 8 --gpus 2-8x", 2, "--gpus '2-8x'"},
    {"sweep --load good.jsonl --redundant 8 --gpus 2x4", 2, "--gpus '2x4'"},
    {"sweep --load good.jsonl --gpus 4 --redundant 0-8x2", 2, "--redundant '0-8x2'"},
    {"sweep --load good.jsonl --gpus 4 --redundant 0-8+0", 2, "--redundant '0-8+0'"},
    {"sweep --load good.jsonl --gpus 4 --redundant 1-8+99999999999", 2, "--redundant '1-8+"},
    {"sweep --load good.jsonl --gpus 4 --redundant 8,8", 2, "--redundant '8,8': '8'"},
    {"sweep --load good.jsonl --gpus 2 --redundant 9", 1, "no combination fits"},
    {SWEEP " --model missing.json", 1, "missing.json: cannot open"},
    {SWEEP " --expert-bytes x", 2, "--expert-bytes 'x': not a size"},
    {SWEEP " --slices 0", 2, "--slices '0'"},
    {SWEEP " --objective best", 2, "--objective 'best': not one of"},
    {SWEEP " --from csv", 1, "good.jsonl:1: "},
    {SWEEP " --experts 7", 1, "good.jsonl"},
    {SWEEP " --dense-layers 0,5", 1, "--dense-layers: layer 5"},
    {SWEEP " --effort 0", 2, "--effort '0'"},
    {SWEEP " --threads 0", 2, "--threads '0'"},
    {SWEEP " --json=1", 2, "--json takes no value"},
    {DIFF " --load=", 2, "--load ''"},
    {DIFF " --load map.json", 1, "map.json: "},
    {DIFF " --load good.jsonl --slices 0", 2, "--slices '0'"},
    {DIFF " --load good.jsonl --objective mean", 2, "--objective 'mean'"},
    {DIFF " --from csv", 2, "--from 'csv': not one of"},
    {"diff map.json map.json --gpus 0", 2, "--gpus '0'"},
    {"diff map.json map.json --gpus 3", 1, "map.json: "},
    {"diff map.json map.json", 2, "give their number with --gpus N"},
    {DIFF " --gpus-per-node x", 2, "--gpus-per-node 'x'"},
    {DIFF " --experts 0", 2, "--experts '0'"},
    {DIFF " --experts 7", 1, "map.json: "},
    {DIFF " --dense-layers 2-1", 2, "--dense-layers '2-1'"},
    {DIFF " --dense-layers 5", 1, "map.json: 2 layers, of which 1 are to be dense"},
    {DIFF " --model missing.json", 1, "missing.json: "},
    {DIFF " --expert-bytes 0", 2, "--expert-bytes '0'"},
    {DIFF " --load good.jsonl --bandwidth 400G", 2, "--bandwidth needs two numbers"},
    {DIFF " --load good.jsonl --bandwidth 400G,0", 2, "--bandwidth '0'"},
    {DIFF " --load good.jsonl --interval 0", 2, "--interval '0'"},
    {DIFF " --load good.jsonl --step-time 0", 2, "--step-time '0'"},
    {DIFF " --load good.jsonl --stall 2", 2, "--stall '2'"},
    {DIFF " --mode inplace", 2, "--mode 'inplace': not one of in-place|staged; did you"},
    {DIFF " --buffer-slots -1", 2, "--buffer-slots '-1'"},
    {DIFF " --mode staged --buffer-slots 0", 2, "--mode staged needs --buffer-slots of at least 1"},
    {DIFF " --json=1", 2, "--json takes no value"},
    {"validate map.json --gpus 0", 2, "--gpus '0'"},
    {"validate map.json --gpus 3", 1, "map.json: "},
    {"validate map.json", 2, "give their number with --gpus N"},
    {"validate map.json --gpus 4 --gpus-per-node x", 2, "--gpus-per-node 'x'"},
    {"validate map.json --gpus 4 --experts 0", 2, "--experts '0'"},
    {"validate map.json --gpus 4 --experts 7", 1, "map.json: "},
    {"validate map.json --gpus 4 --from nothing", 2, "--from 'nothing': not one of"},
    {"validate map.json --gpus 4 --from csv", 2, "--from 'csv': not one of"},
    {"validate map.json --gpus 4 --json=1", 2, "--json takes no value"},
    {"validate map.json --gpus 4 --engine nothing", 2, "--engine 'nothing': not one of"},
    {"validate map.json --gpus 4 --engine sglang --model nofile", 1, "nofile: cannot open"},
    {"validate map.json --gpus 4 --engine sglang --dense-layers x", 2, "--dense-layers 'x'"},
    {"validate map.json --gpus 4 --explain=1", 2, "--explain takes no value"},
    {"synth --layers 0 --out new", 2, "--layers '0'"},
    {"synth --layers 1025 --out new", 2, "--layers '1025'"},
    {"synth --experts 4097 --out new", 2, "--experts '4097'"},
    {"synth --experts 1e3 --out new", 2, "--experts '1e3'"},
    {"synth --steps 0 --out new", 2, "--steps '0'"},
    {"synth --tokens 0 --out new", 2, "--tokens '0'"},
    {"synth --topk 0 --out new", 2, "--topk '0'"},
    {"synth --seed -1 --out new", 2, "--seed '-1'"},
    {"synth --seed 18446744073709551616 --out new", 2, "--seed '18446744073709551616'"},
    {"synth --groups x --out new", 2, "--groups 'x'"},
    {"synth --domains 65 --out new", 2, "--domains '65'"},
    {"synth --first-layer -1 --out new", 2, "--first-layer '-1'"},
    {"synth --format cvs --out new", 2, "--format 'cvs': not one of csv|jsonl|sglang; did you"},
    {"synth --steps 1 --layers 1 --out no/such/directory", 1, "no/such/directory: "},
};

typedef struct broken_file {
    const char *content;
    const char *message;
} broken_file;

static const broken_file broken_counts[] = {
    {"", "bad"},
    {"\n", "bad"},
    {"hello\n", "bad"},
    {"{\"step\":0,\"layer\":0,\"counts\":[1,2", "bad:1: "},
    {"{\"step\":0,\"layer\":0,\"counts\":[1,2]}\n{\"step\":1,\"lay", "bad:2: "},
    {"{\"step\":0,\"layer\":0,\"counts\":[1,-2]}\n", "bad:1: "},
    {"{\"step\":0,\"layer\":0,\"counts\":[1,NaN]}\n", "bad:1: "},
    {"{\"step\":0,\"layer\":0,\"counts\":[1,1e999]}\n", "bad:1: "},
    {"{\"step\":0,\"layer\":0,\"counts\":[1,\"2\"]}\n", "bad:1: "},
    {"{\"step\":0,\"layer\":-1,\"counts\":[1,2]}\n", "bad:1: "},
    {"{\"step\":-1,\"layer\":0,\"counts\":[1,2]}\n", "bad:1: "},
    {"{\"step\":0,\"layer\":99999999,\"counts\":[1,2]}\n", "bad:1: "},
    {"{\"step\":0,\"layer\":0,\"counts\":[]}\n", "bad:1: "},
    {"{\"step\":0,\"layer\":0,\"counts\":[1,2]}\n{\"step\":1,\"layer\":0,\"counts\":[1,2,3]}\n",
     "bad:2: "},
    {"{\"step\":0,\"layer\":0,\"counts\":[1,2]} x\n", "bad:1: "},
    {"step,layer,expert,tokens\n", "bad"},
    {"step,layer,expert,tokens\n0,0,0\n", "bad:2: "},
    {"step,layer,expert,tokens\n0,0,0,1,2\n", "bad:2: "},
    {"step,layer,expert,tokens\n0,0,0,-1\n", "bad:2: "},
    {"step,layer,expert,tokens\n0,0,0,many\n", "bad:2: "},
    {"step,layer,expert,tokens\n0,0,-1,5\n", "bad:2: "},
    {"layer,expert\n0,0\n", "bad"},
    {"{\"logical_count\":[[1,2],[3]]}", "bad"},
    {"{\"logical_count\":[[1,2],[3,4]", "bad"},
    {"{\"logical_count\":[[1,2],[3,4]]} trailing", "bad"},
    {"{\"logical_count\":[]}", "bad"},
    {"{\"logical_count\":\"none\"}", "bad"},
};

static const broken_file broken_placements[] = {
    {"", "bad"},
    {"[", "bad"},
    {"{}", "bad"},
    {"{\"physical_to_logical_map\":[]}", "bad"},
    {"{\"physical_to_logical_map\":[[]]}", "bad"},
    {"{\"physical_to_logical_map\":[[0,1,2,3],[0,1,2]]}", "bad"},
    {"{\"physical_to_logical_map\":[[0,1,2,-2]]}", "bad"},
    {"{\"physical_to_logical_map\":[[0,1,2,1.5]]}", "bad"},
    {"{\"physical_to_logical_map\":[[0,1,2,99999999999]]}", "bad"},
    {"{\"physical_to_logical_map\":[[0,1,2,\"3\"]]}", "bad"},
    {"{\"physical_to_logical_map\":[[0,1,2,3]]", "bad"},
    {"{\"physical_to_logical_map\":[[0,1,2,3]]}]", "bad"},
    {"{\"physical_to_logical_map\":[[0,1,2,3]],\"more\":1}", "bad"},
    {"{\"physical_to_logical_map\":[[0,1,2,3,4]]}", "bad"},
};

static bool is_file_refused(const char *directory, const broken_file *file, const char *line)
{
    test_write_text(test_join(directory, "bad").text, file->content);
    run_refusal expected = {line, 1, file->message};
    bool refused = run_is_refused(directory, &expected);
    if (!refused) {
        print_error("with the file %s\n", file->content);
    }
    return refused;
}

static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    run_ok(*state, "synth --layers 2 --experts 8 --steps 2 --tokens 50 --topk 2 --out good.jsonl");
    run_ok(*state, "plan --load good.jsonl --gpus 4 --slots 8 --out map.json");
    return 0;
}

static void wrong_commands_are_refused(void **state)
{
    int accepted = 0;
    for (size_t i = 0; i < sizeof(wrong_commands) / sizeof(wrong_commands[0]); i++) {
        accepted += run_is_refused(*state, &wrong_commands[i]) ? 0 : 1;
    }
    assert_int_equal(accepted, 0);
}

static void wrong_values_are_refused(void **state)
{
    int accepted = 0;
    for (size_t i = 0; i < sizeof(wrong_values) / sizeof(wrong_values[0]); i++) {
        accepted += run_is_refused(*state, &wrong_values[i]) ? 0 : 1;
    }
    assert_int_equal(accepted, 0);
}

/* Whether the table above has a row for an option of a command. */
static bool is_tried(const char *command, const char *option)
{
    size_t length = strlen(option);
    for (size_t i = 0; i < sizeof(wrong_values) / sizeof(wrong_values[0]); i++) {
        const char *line = wrong_values[i].line;
        const char *found = strstr(line, option);
        if (strncmp(line, command, strlen(command)) == 0 && found != NULL &&
            (found[length] == ' ' || found[length] == '=')) {
            return true;
        }
    }
    return false;
}

static void every_option_is_tried_with_a_wrong_value(void **state)
{
    static const char *const commands[] = {"plan", "sweep", "diff", "convert", "validate", "synth"};
    for (size_t i = 0; i < 6; i++) {
        const char *arguments[] = {commands[i], "--help", NULL};
        run_result help = run_arguments(*state, arguments);
        int options = 0;
        for (const char *at = strstr(help.out, "\n  --"); at != NULL; at = strstr(at, "\n  --")) {
            char option[64];
            assert_int_equal(sscanf(at, " %63s", option), 1);
            if (strcmp(option, "--help") != 0 && !is_tried(commands[i], option)) {
                print_error("%s %s is not tried\n", commands[i], option);
                fail();
            }
            options++;
            at++;
        }
        assert_true(options > 4);
        run_release(&help);
    }
}

static void broken_counts_are_refused(void **state)
{
    int accepted = 0;
    for (size_t i = 0; i < sizeof(broken_counts) / sizeof(broken_counts[0]); i++) {
        accepted += is_file_refused(*state, &broken_counts[i], "plan --load bad" SHAPE) ? 0 : 1;
    }
    assert_int_equal(accepted, 0);
}

static void broken_placements_are_refused(void **state)
{
    int accepted = 0;
    for (size_t i = 0; i < sizeof(broken_placements) / sizeof(broken_placements[0]); i++) {
        accepted += is_file_refused(*state, &broken_placements[i], "validate bad --gpus 4") ? 0 : 1;
    }
    assert_int_equal(accepted, 0);
}

static void placement_in_force_that_breaks_the_rules_is_refused(void **state)
{
    static const broken_file missing = {
        "{\"physical_to_logical_map\":[[0,1,2,3,4,5,6,7],[0,1,2,3,4,5,6,0]]}",
        "bad: layer 1: expert 7 has no replica"};
    static const broken_file layers = {
        "{\"physical_to_logical_map\":[[0,1,2,3,4,5,6,7],[0,1,2,3,4,5,6,7],[0,1,2,3,4,5,6,7]]}",
        "bad: 3 layers, dense ones too, but the loads have layers 0 to 1"};
    assert_true(is_file_refused(*state, &missing, GOOD " --current bad"));
    assert_true(is_file_refused(*state, &layers, GOOD " --current bad"));
}

static void quoted_text_stays_on_one_line(void **state)
{
    static const char *const texts[] = {"a\nb", "\033[31mred", "\r\r"};
    for (size_t i = 0; i < 3; i++) {
        const char *lines[][6] = {{texts[i], NULL},
                                  {"plan", texts[i], NULL},
                                  {"plan", "--gpus", texts[i], NULL},
                                  {"validate", texts[i], "--gpus", "4", NULL}};
        for (size_t k = 0; k < 4; k++) {
            run_result result = run_arguments(*state, lines[k]);
            assert_in_range(result.exit_code, 1, 2);
            assert_int_equal(strcspn(result.err, "\n\r\033") + 1, strlen(result.err));
            run_release(&result);
        }
    }
}

#define IN_PREPARED_DIRECTORY(test)                                                                \
    cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(IN_PREPARED_DIRECTORY(wrong_commands_are_refused),
          IN_PREPARED_DIRECTORY(wrong_values_are_refused),
          IN_PREPARED_DIRECTORY(every_option_is_tried_with_a_wrong_value),
          IN_PREPARED_DIRECTORY(broken_counts_are_refused),
          IN_PREPARED_DIRECTORY(broken_placements_are_refused),
          IN_PREPARED_DIRECTORY(placement_in_force_that_breaks_the_rules_is_refused),
          IN_PREPARED_DIRECTORY(quoted_text_stays_on_one_line))
