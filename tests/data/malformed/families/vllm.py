# SPDX-License-Identifier: MIT
"""vLLM's maps, mappings, statistics, dumps and loads."""

import struct

from .base import compact, json_traps, replaced, structure
from .safetensors import tensors, tensor_traps


def vllm_maps(files):
    good = compact([[0, 1, 2, 0], [3, 1, 2, 0]])
    files.put("vllm_map-good.json", good)
    files.put("vllm_map-crlf.json", good.replace(b",", b",\r\n"))
    files.cut("vllm_map", ".json", good, structure(good))
    json_traps(files, "vllm_map", ".json", good, b",2,")
    files.put("vllm_map-shape.json", compact([[0, 1, 2, 0], [3, 1, 2]]))
    files.put("vllm_map-depth_mixed.json", compact([[0, 1, 2, 0], 3]))
    files.put("vllm_map-empty.json", b"[]")


def vllm_load(files):
    files.put("vllm_load-recorded.safetensors", files.read("format/vllm_load.safetensors"))

    def put(name, data):
        files.put(f"vllm_load-{name}.safetensors", data)

    tensor_traps(put, "m", [2, 2], "F32", 4)
    entry = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    for name, value in {"nan": float("nan"), "infinity": float("inf"), "negative": -1.0}.items():
        known = {"__metadata__": {"version": "1"}, "m": entry}
        put(name, tensors(known, struct.pack("<4f", 1, 2, 3, value)))
    put("dimensions_3", tensors({"m": {**entry, "shape": [1, 2, 2]}}, bytes(16)))
    put("version_2", tensors({"__metadata__": {"version": "2"}, "m": entry}, bytes(16)))
    put("metadata_number", tensors({"__metadata__": {"version": 1}, "m": entry}, bytes(16)))


def vllm_stats(files):
    record = {"record_type": "eplb_load_stats", "version": 1, "step": 7, "num_ranks": 2,
              "expert_load": [[4, 5, 6, 7]], "p2l_map": [[0, 1, 2, 0]]}
    good = compact(record) + b"\n"
    files.put("vllm_stats-recorded.jsonl", files.read("format/vllm_stats.jsonl"))
    files.put("vllm_stats-good.jsonl", good)
    files.put("vllm_stats-crlf.jsonl", good.replace(b"\n", b"\r\n"))
    files.cut("vllm_stats", ".jsonl", good, structure(good[:-1]))
    json_traps(files, "vllm_stats", ".jsonl", good, b",5,")
    changes = {
        "version_2": {"version": 2},
        "version_word": {"version": "1"},
        "step_negative": {"step": -1},
        "step_above_2_53": {"step": 2**53 + 1},
        "step_missing": {"step": None},
        "load_missing": {"expert_load": None},
        "map_missing": {"p2l_map": None},
        "load_shape": {"expert_load": [[4, 5, 6]]},
        "load_layers": {"expert_load": [[4, 5, 6, 7]] * 2},
        "load_empty": {"expert_load": []},
        "load_depth_1": {"expert_load": [4, 5, 6, 7]},
        "map_shape": {"p2l_map": [[0, 1, 2]]},
        "map_layers": {"p2l_map": [[0, 1, 2, 0]] * 2},
        "map_empty": {"p2l_map": []},
        "map_far": {"p2l_map": [[0, 1, 2, 4096]]},
        "map_2_60": {"p2l_map": [[0, 1, 2, 2**60]]},
        "map_negative": {"p2l_map": [[0, 1, 2, -2]]},
        "map_fraction": {"p2l_map": [[0, 1, 2, 0.5]]},
        "map_word": {"p2l_map": [[0, 1, 2, "a"]]},
        "map_gap": {"p2l_map": [[0, 1, 3, 0]]},
    }
    for name, values in changes.items():
        changed = {k: v for k, v in {**record, **values}.items() if v is not None}
        files.put(f"vllm_stats-{name}.jsonl", good + compact(changed) + b"\n")
    files.put("vllm_stats-step_twice.jsonl", good + good)
    files.put("vllm_stats-step_falls.jsonl", good + compact({**record, "step": 6}) + b"\n")
    files.put("vllm_stats-record_cut.jsonl", good + good[:40])
    files.put("vllm_stats-key_twice.jsonl", replaced(good, b'"step":7', b'"step":7,"step":7'))
    files.put("vllm_stats-other_records.jsonl", b'{"record_type":"note"}\n')


def vllm_dumps(files):
    snapshot = {"step": 0, "window_expert_load": [[9, 9, 9, 9]], "latest_expert_load": [[4, 5, 6, 7]],
                "physical_to_logical_map": [[0, 1, 2, 0]]}
    document = {"metadata": {"num_physical_experts": 4, "num_logical_experts": 3}, "snapshots": [snapshot]}
    good = compact(document)
    files.put("vllm_dump-recorded.json", files.read("format/vllm_dump.json"))
    files.put("vllm_dump-good.json", good)
    files.put("vllm_dump-crlf.json", good.replace(b",", b",\r\n"))
    files.cut("vllm_dump", ".json", good, structure(good))
    json_traps(files, "vllm_dump", ".json", good, b",5,")
    for missing in snapshot:
        part = {k: v for k, v in snapshot.items() if k != missing}
        files.put(f"vllm_dump-{missing}_missing.json", compact({**document, "snapshots": [part]}))
    files.put("vllm_dump-metadata_missing.json", compact({"snapshots": [snapshot]}))
    files.put("vllm_dump-snapshots_missing.json", compact({"metadata": {}}))
    files.put("vllm_dump-snapshots_empty.json", compact({"metadata": {}, "snapshots": []}))
    files.put("vllm_dump-snapshots_object.json", compact({"metadata": {}, "snapshots": {}}))
    changes = {
        "map_far": {"physical_to_logical_map": [[0, 1, 2, 4096]]},
        "map_shape": {"physical_to_logical_map": [[0, 1, 2]]},
        "load_shape": {"latest_expert_load": [[4, 5, 6]]},
        "step_negative": {"step": -1},
    }
    for name, values in changes.items():
        files.put(f"vllm_dump-{name}.json", compact({**document, "snapshots": [{**snapshot, **values}]}))
    files.put("vllm_dump-step_twice.json", compact({**document, "snapshots": [snapshot] * 2}))


def vllm_mappings(files):
    document = {"record_type": "eplb_initial_mapping", "version": 1, "num_redundant_experts": 1, "num_slots": 4,
                "initial_global_assignments": {"0": [0, 1, 2, 0], "1": [2, 1, 0, 1]}}
    good = compact(document) + b"\n"
    files.put("vllm_mapping-recorded.jsonl", files.read("format/vllm_initial_mapping.jsonl"))
    files.put("vllm_mapping-good.jsonl", good)
    files.put("vllm_mapping-crlf.jsonl", good.replace(b"\n", b"\r\n"))
    files.cut("vllm_mapping", ".jsonl", good, structure(good[:-1]))
    json_traps(files, "vllm_mapping", ".jsonl", good, b"[2,")
    rows = document["initial_global_assignments"]
    changes = {
        "type_other": {"record_type": "eplb_load_stats"},
        "version_2": {"version": 2},
        "slots_fewer": {"num_slots": 3},
        "slots_word": {"num_slots": "4"},
        "slots_2_60": {"num_slots": 2**60},
        "slots_negative": {"num_slots": -4},
        "redundant_more": {"num_redundant_experts": 2},
        "redundant_negative": {"num_redundant_experts": -1},
        "assignments_list": {"initial_global_assignments": [[0, 1, 2, 0]]},
        "assignments_empty": {"initial_global_assignments": {}},
        "layer_word": {"initial_global_assignments": {**rows, "two": [0, 1, 2, 0]}},
        "layer_negative": {"initial_global_assignments": {**rows, "-1": [0, 1, 2, 0]}},
        "layer_missing": {"initial_global_assignments": {**rows, "3": [0, 1, 2, 0]}},
        "layer_shape": {"initial_global_assignments": {**rows, "2": [0, 1, 2]}},
        "layer_number": {"initial_global_assignments": {**rows, "2": 7}},
        "expert_far": {"initial_global_assignments": {**rows, "2": [0, 1, 2, 4096]}},
    }
    for name, values in changes.items():
        files.put(f"vllm_mapping-{name}.jsonl", compact({**document, **values}) + b"\n")
    files.put("vllm_mapping-twice.jsonl", good + good)
    for missing in document:
        part = {k: v for k, v in document.items() if k != missing}
        files.put(f"vllm_mapping-{missing}_missing.jsonl", compact(part) + b"\n")
