# SPDX-License-Identifier: MIT
"""TensorRT-LLM's YAML and recordings."""

import struct

from .base import BOM, compact, replaced
from .safetensors import tensors, tensor_traps


def trtllm_maps(files):
    good = b"num_slots: 4\nlayer_updates_per_iter: 0\ninitial_global_assignments:\n"
    good += b"  3: [0, 1, 2, 0]\n  4: [2, 1, 0, 1]\n"
    files.put("trtllm-recorded.yaml", files.read("format/trtllm_placement.yaml"))
    files.put("trtllm-good.yaml", good)
    files.put("trtllm-crlf.yaml", good.replace(b"\n", b"\r\n"))
    files.cut("trtllm", ".yaml", good, [5, 11, 13, 40, 67, 71, 73, 75, 78])
    changes = {
        "slots_missing": (b"num_slots: 4\n", b""),
        "slots_word": (b"num_slots: 4", b"num_slots: four"),
        "slots_2_60": (b"num_slots: 4", b"num_slots: 1152921504606846976"),
        "slots_negative": (b"num_slots: 4", b"num_slots: -4"),
        "slots_fewer": (b"num_slots: 4", b"num_slots: 3"),
        "slots_twice": (b"num_slots: 4", b"num_slots: 4\nnum_slots: 4"),
        "layer_twice": (b"  4:", b"  3:"),
        "layer_word": (b"  4:", b"  four:"),
        "layer_string": (b"  4:", b"  '4':"),
        "layer_negative": (b"  4:", b"  -4:"),
        "layer_far": (b"  4:", b"  1024:"),
        "expert_word": (b"[2, 1", b"[two, 1"),
        "expert_fraction": (b"[2, 1", b"[2.5, 1"),
        "expert_negative": (b"[2, 1", b"[-2, 1"),
        "expert_far": (b"[2, 1", b"[4096, 1"),
        "expert_nan": (b"[2, 1", b"[.nan, 1"),
        "expert_list": (b"[2, 1", b"[[2], 1"),
        "slots_more": (b"[2, 1", b"[2, 1, 1"),
        "tab": (b"  4:", b"\t4:"),
        "zero_byte": (b"[2, 1", b"[\0002, 1"),
        "two_documents": (b"num_slots", b"a: 1\n---\nnum_slots"),
        "tag": (b"[2, 1", b"[!!python/object:os.system 2, 1"),
        "bom_inside": (b"  4:", b"  " + BOM + b"4:"),
    }
    for name, (old, new) in changes.items():
        files.put(f"trtllm-{name}.yaml", replaced(good, old, new))
    laughs = b"a: &a [0, 1, 2, 0]\n"
    for letter in range(ord("b"), ord("k")):
        laughs += b"%c: &%c [%s]\n" % (letter, letter, b", ".join([b"*%c" % (letter - 1)] * 9))
    files.put("trtllm-aliases.yaml", laughs + good)
    anchored = good.replace(b"3: [", b"3: &a [")
    files.put("trtllm-alias_of_row.yaml", anchored.replace(b"[2, 1, 0, 1]", b"*a"))
    files.put("trtllm-deep.yaml", good + b"  5: " + b"[" * 20000 + b"\n")


def trtllm_recordings(files):
    info = {"num_experts": 4, "num_experts_per_token": 2}

    def rank(iterations, layers=(3,), experts=4):
        header = {}
        data = b""
        for iteration in iterations:
            for layer in layers:
                row = struct.pack(f"<{experts}q", *range(1, experts + 1))
                place = [len(data), len(data) + len(row)]
                header[f"{iteration}_{layer}"] = {"dtype": "I64", "shape": [experts], "data_offsets": place}
                data += row
        return tensors(header, data)

    def put(name, ranks, meta=None, extra=()):
        for file, data in {"meta_info.json": compact(info) if meta is None else meta, **ranks, **dict(extra)}.items():
            if data is not None:
                files.put(f"trtllm_recording-{name}/{file}", data)

    good = {f"rank{r}.safetensors": rank([7, 8]) for r in (0, 1)}
    put("good", good)
    put("meta_missing", good, extra={"meta_info.json": None})
    put("meta_cut", good, compact(info)[:10])
    put("meta_list", good, b"[]")
    put("meta_key_missing", good, b'{"num_experts_per_token":2}')
    put("meta_experts_2_60", good, b'{"num_experts":1152921504606846976,"num_experts_per_token":2}')
    put("meta_experts_negative", good, b'{"num_experts":-4,"num_experts_per_token":2}')
    put("meta_experts_fewer", good, b'{"num_experts":3,"num_experts_per_token":2}')
    put("meta_key_twice", good, b'{"num_experts":4,"num_experts":4,"num_experts_per_token":2}')
    put("rank_missing", {"rank0.safetensors": good["rank0.safetensors"], "rank2.safetensors": rank([7, 8])})
    put("no_ranks", {})
    put("iteration_missing", {**good, "rank1.safetensors": rank([7, 9])})
    put("iteration_cut", {**good, "rank1.safetensors": rank([7])})
    put("layer_missing", {"rank0.safetensors": rank([7, 8], (3, 4)), "rank1.safetensors": rank([7, 8])})
    put("experts_differ", {**good, "rank1.safetensors": rank([7, 8], (3,), 5)})
    put("empty_rank", {**good, "rank1.safetensors": b""})

    def put_rank(name, data):
        put(f"rank_{name}", {"rank0.safetensors": data})

    tensor_traps(put_rank, "7_3", [4], "I64", 8)
    entry = {"dtype": "I64", "shape": [4], "data_offsets": [0, 32]}
    for key in ("7", "7_", "_3", "a_3", "7_3_1", "-7_3", "7_-3", "07_3", "7_1024", "99999999999999999999_3"):
        put_rank(f"key_{key.replace('-', 'minus')}", tensors({key: entry}, bytes(32)))
    put_rank("count_negative", tensors({"7_3": entry}, struct.pack("<4q", 1, 2, 3, -1)))
    put_rank("count_above_2_53", tensors({"7_3": entry}, struct.pack("<4q", 1, 2, 3, 2**53 + 1)))
