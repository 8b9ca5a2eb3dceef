# SPDX-License-Identifier: MIT
"""vLLM-Ascend's maps, and recordings of MindIE."""

import json

from .base import BOM, NUMBERS, compact, replaced, structure


def ascend_maps(files):
    recorded = json.loads(files.read("format/ascend_expert_map.json"))
    layers = recorded["layer_list"]
    recorded["layer_list"] = layers[:1]
    recorded["moe_layer_count"] = 1
    good = compact(recorded)
    devices = len(recorded["layer_list"][0]["device_list"])
    first = compact(recorded["layer_list"][0]["device_list"][0]["device_expert"])
    files.put("ascend-good.json", good)
    files.put("ascend-crlf.json", good.replace(b",", b",\r\n"))
    files.cut("ascend", ".json", good, [p for p in structure(good) if p < 110])
    count = b'"device_count":%d' % devices
    changes = {
        "layers_more": (b'"moe_layer_count":1', b'"moe_layer_count":2'),
        "layers_2_60": (b'"moe_layer_count":1', b'"moe_layer_count":1152921504606846976'),
        "layers_word": (b'"moe_layer_count":1', b'"moe_layer_count":"1"'),
        "key_missing": (b'"layer_id"', b'"layer_iD"'),
        "layer_negative": (b'"layer_id":0', b'"layer_id":-1'),
        "layer_far": (b'"layer_id":0', b'"layer_id":9'),
        "devices_more": (count, b'"device_count":%d' % (devices + 1)),
        "devices_none": (count, b'"device_count":0'),
        "device_twice": (b'"device_id":1', b'"device_id":0'),
        "device_far": (b'"device_id":1', b'"device_id":77'),
        "slots_differ": (first, compact(json.loads(first)[:-1])),
        "slots_none": (first, b"[]"),
        "slots_object": (first, b"{}"),
        "expert_negative": (first, b"[-2" + first[first.index(b",") :]),
        "expert_word": (first, b'["a"' + first[first.index(b",") :]),
        "expert_far": (first, b"[4096" + first[first.index(b",") :]),
        "key_twice": (b'"moe_layer_count":1', b'"moe_layer_count":1,"moe_layer_count":1'),
        "zero_byte": (b'"moe_layer_count":1', b'"moe_layer_count":\0001'),
    }
    for name, (old, new) in changes.items():
        files.put(f"ascend-{name}.json", replaced(good, old, new))
    drafts = {
        "draft_good": (1, [0, 1]),
        "draft_far": (1, [0, 7]),
        "draft_first": (1, [1, 0]),
        "draft_again": (1, [0, 0]),
        "drafts_two": (1, [0, 1, 2]),
        "draft_only": (0, [0]),
    }
    for name, (count, ids) in drafts.items():
        recorded["moe_layer_count"] = count
        recorded["layer_list"] = [dict(layers[i], layer_id=id) for i, id in enumerate(ids)]
        files.put(f"ascend-{name}.json", compact(recorded))


def mindie(files):
    config = "model_gen_config.json"

    def put(name, changes):
        good = {"decode_0.csv": b"5,6\n7,8\n", "decode_1.csv": b"1,2\n3,4\n"}
        for file, data in {**good, **changes}.items():
            if data is not None:
                files.put(f"mindie-{name}/{file}", data)

    put("good", {})
    put("crlf", {"decode_0.csv": b"5,6\r\n7,8\r\n", "decode_1.csv": b"1,2\r\n3,4\r\n"})
    for name, text in NUMBERS.items():
        put(name, {"decode_1.csv": b"1,2\n3," + text + b"\n"})
    for place in (1, 2, 3, 4, 5, 6):
        put(f"cut_{place}", {"decode_1.csv": b"1,2\n3,4\n"[:place]})
    rows = {
        "bom_inside": b"1,2\n" + BOM + b"3,4\n",
        "zero_byte": b"1,2\n3\0,4\n",
        "blank_inside": b"1,2\n\n3,4\n",
        "blanks_only": b"\n\n",
        "empty": b"",
        "header": b"a,b\n1,2\n",
        "column_more": b"1,2,3\n3,4,5\n",
        "column_ragged": b"1,2\n3\n",
        "row_more": b"1,2\n3,4\n5,6\n",
        "semicolons": b"1;2\n3;4\n",
        "long_line": b"1,2\n3," + b"0" * 200000 + b"\n",
        "utf16": "1,2\n3,4\n".encode("utf-16"),
    }
    for name, data in rows.items():
        put(name, {"decode_1.csv": data})
    put("rank_missing", {"decode_1.csv": None, "decode_2.csv": b"1,2\n3,4\n"})
    put("rank_twice", {"decode_01.csv": b"1,2\n3,4\n"})
    put("rank_huge", {"decode_99999999999.csv": b"1,2\n3,4\n"})
    put("phases_differ", {"prefill_0.csv": b"5,6\n7,8\n"})
    put("other_file", {"rank0.jsonl": b"{}"})
    configs = {
        "cut": b'{"num_moe_layers":',
        "list": b"[]",
        "empty": b"",
        "no_layers": b"{}",
        "layers_zero": b'{"num_moe_layers":0}',
        "layers_word": b'{"num_moe_layers":"2"}',
        "layers_2_60": b'{"num_moe_layers":1152921504606846976}',
        "layers_negative": b'{"num_moe_layers":-2}',
        "layers_more": b'{"num_moe_layers":3}',
        "key_twice": b'{"num_moe_layers":2,"num_moe_layers":2}',
        "deep": b'{"a":' + b"[" * 100000,
    }
    for name, data in configs.items():
        put(f"config_{name}", {config: data})
    put("sums_fall", {config: b'{"num_moe_layers":1}', "decode_0.csv": b"5,6\n4,8\n"})
