#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes malformed files from the good ones, always the same bytes.

usage: make.py GOOD OUT LIST

GOOD is tests/data; the files are written to the directory OUT, their names to the file LIST. A
section makes the files of one format, and expected.txt says what must become of each. Needs nothing
but Python.
"""

import gzip
import io
import json
import os
import shutil
import struct
import sys
import zipfile

SECTIONS = []
BOM = b"\xef\xbb\xbf"
# Numbers that no count, and no id, can be.
NUMBERS = {
    "nan": b"NaN",
    "infinity": b"Infinity",
    "1e400": b"1e400",
    "above_2_53": b"9007199254740993",
    "negative": b"-1",
    "hexadecimal": b"0x10",
    "word": b"many",
    "string": b'"1"',
    "null": b"null",
    "zeros_first": b"007",
}


def section(function):
    SECTIONS.append(function)
    return function


class Files:
    def __init__(self, good, out):
        self.good = good
        self.out = out
        self.names = []

    def read(self, name):
        with open(os.path.join(self.good, name), "rb") as file:
            return file.read()

    def put(self, name, data):
        """Writes a file; of a name with a slash, one of a recording that is a directory."""
        path = os.path.join(self.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        listed = name.split("/")[0]
        if listed not in self.names:
            self.names.append(listed)

    def cut(self, prefix, suffix, data, places):
        for place in sorted(set(places)):
            assert 0 < place < len(data), (prefix, place, len(data))
            self.put(f"{prefix}-cut_{place:04d}{suffix}", data[:place])


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def structure(data):
    """Places behind each mark of a JSON text, and inside of its words."""
    marks = [i + 1 for i, byte in enumerate(data[:-1]) if byte in b"{}[],:"]
    words = [i + 1 for i in range(1, len(data) - 2) if data[i : i + 2].isalpha()]
    return marks + words[:1]


def replaced(data, old, new):
    assert data.count(old) >= 1, (old, data)
    return data.replace(old, new, 1)


def json_traps(files, prefix, suffix, good, number):
    """What can be wrong in any JSON text. `number` is one of its numbers, with what is around."""
    begin = number[: len(number) - len(number.lstrip(b"[,:"))]
    end = number[len(number.rstrip(b"],}")) :]
    digits = number[len(begin) :]
    for name, text in NUMBERS.items():
        files.put(f"{prefix}-{name}{suffix}", replaced(good, number, begin + text + end))
    files.put(f"{prefix}-bom_inside{suffix}", replaced(good, number, begin + BOM + digits))
    files.put(f"{prefix}-zero_byte{suffix}", replaced(good, number, begin + b"\0" + digits))
    files.put(f"{prefix}-behind{suffix}", good.rstrip() + b"]")


def npy(descr, order, shape, data, version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    size = 10 if version == 1 else 12
    header += b" " * (-(size + len(header) + 1) % 64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


@section
def csv_counts(files):
    good = b"\n".join(files.read("format/counts.csv").split(b"\n")[:5]) + b"\n"
    files.put("csv-good.csv", good)
    files.put("csv-crlf.csv", good.replace(b"\n", b"\r\n"))
    files.put("csv-bom.csv", BOM + good)
    files.put("csv-without_last_newline.csv", good[:-1])
    files.cut("csv", ".csv", good, [2, 10, 24, 25, 26, 28, 30, 32])
    lines = good.split(b"\n")
    second = lines[2]
    bad = {
        "bom_inside": BOM + second,
        "zero_byte": second.replace(b",", b"\0,", 1),
        "two_dots": second + b".5.5",
        "quoted": b'0,0,1,"151"',
        "twice": lines[1],
        "fields_missing": b"0,0,1",
        "fields_many": second + b",7",
        "semicolons": second.replace(b",", b";"),
        "layer_negative": b"0,-1,1,151",
        "layer_fraction": b"0,0.5,1,151",
        "layer_far": b"0,1024,1,151",
        "expert_far": b"0,0,4096,151",
        "expert_2_60": b"0,0,1152921504606846976,151",
        "step_above_2_53": b"9007199254740993,0,1,151",
        "step_negative": b"-3,0,1,151",
        "blank_inside": b"",
        "long_line": second + b"0" * 70000,
    }
    for name, text in NUMBERS.items():
        bad[name] = second.rsplit(b",", 1)[0] + b"," + text
    for name, line in bad.items():
        files.put(f"csv-{name}.csv", b"\n".join(lines[:2] + [line] + lines[3:]))
    files.put("csv-column_twice.csv", good.replace(b"step", b"layer", 1))
    files.put("csv-column_missing.csv", good.replace(b"tokens", b"token", 1))
    files.put("csv-utf16.csv", good.decode().encode("utf-16"))


@section
def jsonl_counts(files):
    lines = []
    for line in files.read("format/counts.jsonl").splitlines()[:2]:
        row = json.loads(line)
        row["counts"] = row["counts"][:3]
        lines.append(compact(row))
    good = b"\n".join(lines) + b"\n"
    files.put("jsonl-good.jsonl", good)
    files.put("jsonl-crlf.jsonl", good.replace(b"\n", b"\r\n"))
    files.put("jsonl-bom.jsonl", BOM + good)
    second = len(lines[0]) + 1
    files.cut("jsonl", ".jsonl", good, [second + place for place in structure(lines[1])])
    number = b"," + str(json.loads(lines[1])["counts"][1]).encode() + b","
    json_traps(files, "jsonl", ".jsonl", good, number)
    files.put("jsonl-line_broken.jsonl", replaced(good, number, number + b"\n"))
    files.put("jsonl-shape.jsonl", replaced(good, number, b","))
    files.put("jsonl-key_twice.jsonl", replaced(good, b'{"step"', b'{"layer":0,"layer":0,"step"'))
    files.put("jsonl-surrogate.jsonl", replaced(good, b'{"step"', b'{"\\udc00":0,"step"'))
    files.put("jsonl-deep.jsonl", replaced(good, b'{"step"', b'{"a":' + b"[" * 5000 + b',"step"'))
    files.put("jsonl-layer_far.jsonl", replaced(good, b'"layer":1', b'"layer":1024'))
    files.put("jsonl-layer_negative.jsonl", replaced(good, b'"layer":1', b'"layer":-1'))
    files.put("jsonl-layer_word.jsonl", replaced(good, b'"layer":1', b'"layer":"1"'))


@section
def sglang_counts(files):
    rows = json.loads(files.read("format/sglang_logical_count.json"))["logical_count"]
    good = compact({"logical_count": [row[:2] for row in rows[1:3]]})
    first = b"[" + str(rows[1][0]).encode() + b","
    files.put("sglang_counts-good.json", good)
    files.put("sglang_counts-crlf.json", good.replace(b",", b",\r\n"))
    files.put("sglang_counts-bom.json", BOM + good)
    files.cut("sglang_counts", ".json", good, structure(good))
    json_traps(files, "sglang_counts", ".json", good, first)
    files.put("sglang_counts-shape.json", replaced(good, first, b"["))
    steps = [[[1, 2]], [[1, 2], [3, 4]]]
    files.put("sglang_counts-step_shape.json", compact({"logical_count": steps}))
    files.put("sglang_counts-depth_mixed.json", compact({"logical_count": [[1, 2], [[1, 2]]]}))
    files.put("sglang_counts-depth_4.json", compact({"logical_count": [[[[1, 2]]]]}))
    files.put("sglang_counts-object.json", compact({"logical_count": {"0": [1, 2]}}))
    files.put("sglang_counts-empty_row.json", compact({"logical_count": [[1, 2], []]}))
    files.put("sglang_counts-key_twice.json", replaced(good, b"{", b'{"logical_count":[[1,2]],'))
    files.put("sglang_counts-surrogate.json", replaced(good, b"{", b'{"a":"\\ud83d",'))
    files.put("sglang_counts-deep.json", replaced(good, b"{", b'{"a":' + b"[" * 100000))
    files.put("sglang_counts-layers_1025.json", compact({"logical_count": [[1]] * 1025}))
    files.put("sglang_counts-experts_4097.json", compact({"logical_count": [[1] * 4097]}))


@section
def sglang_pt(files):
    good = files.read("format/sglang_stat_2d.pt")
    root = "sglang_stat_2d"
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        code = archive.read(f"{root}/data.pkl")
        data = archive.read(f"{root}/data/0")
    entries = {"data.pkl": code, "data/0": data, "version": b"3\n"}

    def put(name, changes):
        changed = {**entries, **changes}
        kept = [(f"{root}/{key}", value) for key, value in changed.items() if value is not None]
        files.put(f"sglang_pt-{name}.pt", npz(kept))

    files.put("sglang_pt-recorded.pt", good)
    put("good", {})
    directory = good.index(b"PK\1\2")
    files.cut("sglang_pt", ".pt", good, [3, 30, 60, 200, directory, directory + 50, len(good) - 22])
    for place in (1, 2, 4, 10, 12, 40, 60, 90, 100, len(code) - 1):
        put(f"code_cut_{place:03d}", {"data.pkl": code[:place]})
    changes = {
        "protocol_0": (b"\x80\2", b"\x80\0"),
        "protocol_5": (b"\x80\2", b"\x80\5"),
        "opcode_unknown": (b"}q\0", b"\xffq\0"),
        "opcode_inst": (b"}q\0", b"(ios\nsystem\n"),
        "global_system": (b"ctorch._utils\n_rebuild_tensor_v2\n", b"cposix\nsystem\n"),
        "global_eval": (b"ccollections\nOrderedDict\n", b"cbuiltins\neval\n"),
        "global_storage": (b"LongStorage", b"TextStorage"),
        "key_missing": (b"logical_count", b"logical_counT"),
        "text_2_gib": (b"X\4\0\0\0rank", b"X\xff\xff\xff\x7frank"),
        "shape_larger": (b"K\x04K\x08\x86q\x09", b"K\x05K\x08\x86q\x09"),
        "shape_2_31": (b"K\x04K\x08\x86q\x09", b"J\xff\xff\xff\x7fK\x08\x86q\x09"),
        "shape_2_60": (b"K\x04K\x08\x86q\x09", b"\x8a\x08" + struct.pack("<q", 2**60) + b"K\x08\x86q\x09"),
        "shape_negative": (b"K\x04K\x08\x86q\x09", b"J\xff\xff\xff\xffK\x08\x86q\x09"),
        "shape_none": (b"K\x04K\x08\x86q\x09", b"K\x00K\x08\x86q\x09"),
        "dimensions_1": (b"K\x04K\x08\x86q\x09", b"K\x08\x85q\x09"),
        "stride_negative": (b"K\x08K\x01\x86q\x0a", b"J\xf8\xff\xff\xffK\x01\x86q\x0a"),
        "stride_outside": (b"K\x08K\x01\x86q\x0a", b"M\xff\xffK\x01\x86q\x0a"),
        "memo_unset": (b"K\0X\x0d", b"h\x63X\x0d"),
        "storage_missing": (b"X\1\0\0\0000q", b"X\1\0\0\0007q"),
        "storage_outside": (b"X\1\0\0\0000q", b"X\5\0\0\0../..q"),
        "stack_empty": (b"}q\0(", b"}q\0u"),
        "items_odd": (b"X\4\0\0\0noteq\x0f", b"NX\4\0\0\0noteq\x0f"),
        "stop_twice": (b"u.", b"u.."),
    }
    for name, (old, new) in changes.items():
        put(name, {"data.pkl": replaced(code, old, new)})
    put("deep", {"data.pkl": b"\x80\2" + b"](" * 100000})
    put("no_code", {"data.pkl": None})
    put("no_storage", {"data/0": None})
    put("storage_short", {"data/0": data[:-1]})
    put("storage_long", {"data/0": data + b"\0"})
    put("count_negative", {"data/0": struct.pack("<q", -1) + data[8:]})
    put("count_above_2_53", {"data/0": struct.pack("<q", 2**53 + 1) + data[8:]})
    put("big_endian", {"byteorder": b"big"})


@section
def npy_counts(files):
    good = files.read("format/steps.npy")
    files.put("npy-good.npy", good)
    header = 10 + struct.unpack_from("<H", good, 8)[0]
    row = len(good) - header
    middle = header + row // 2
    heads = [3, 7, 9, 10, 40, header - 1, header, header + 3]
    files.cut("npy", ".npy", good, heads + [middle, len(good) - 1])
    data = struct.pack("<6d", 1, 2, 3, 4, 5, 6)
    for name, value in {"nan": float("nan"), "infinity": float("inf"), "negative": -1.0}.items():
        changed = data[:32] + struct.pack("<d", value) + data[40:]
        files.put(f"npy-{name}.npy", npy("<f8", False, (2, 3), changed))
    for name, value in {"above_2_53": 2**53 + 1, "negative_integer": -5}.items():
        changed = struct.pack("<6q", 1, 2, 3, 4, value, 6)
        files.put(f"npy-{name}.npy", npy("<i8", False, (2, 3), changed))
    shapes = {
        "2_60": (2**60, 3),
        "2_60_experts": (2, 2**60),
        "2_64": (2**64, 3),
        "steps_2_60": (2**60, 1, 1),
        "overflow": (2**31, 2**31, 4),
        "layers_1025": (1025, 1),
        "experts_4097": (1, 4097),
        "zero": (0, 3),
        "zero_experts": (2, 0),
        "dimensions_1": (6,),
        "dimensions_4": (1, 1, 2, 3),
        "larger": (2, 4),
        "smaller": (2, 2),
    }
    for name, shape in shapes.items():
        files.put(f"npy-shape_{name}.npy", npy("<f8", False, shape, data))
        files.put(f"npy-fortran_{name}.npy", npy("<f8", True, shape, data))
    types = {
        "complex": "<c16",
        "object": "|O",
        "text": "<U8",
        "float128": "<f16",
        "bool": "|b1",
        "half": "<f2",
        "integer_3": "<i3",
        "empty": "",
        "no_order": "f8",
    }
    for name, descr in types.items():
        files.put(f"npy-type_{name}.npy", npy(descr, False, (2, 3), data))
    plain = npy("<f8", False, (2, 3), data)
    files.put("npy-magic.npy", b"\x93NUMPX" + plain[6:])
    files.put("npy-version_4.npy", replaced(plain, b"NUMPY\x01", b"NUMPY\x04"))
    second = npy("<f8", False, (2, 3), data, 2)
    files.put("npy-header_4_gib.npy", second[:8] + b"\xff\xff\xff\xff" + plain[12:])
    files.put("npy-key_twice.npy", replaced(plain, b"'shape'", b"'descr'"))
    files.put("npy-key_unknown.npy", replaced(plain, b"'descr'", b"'desc_'"))
    files.put("npy-key_missing.npy", replaced(plain, b"'shape'", b"'shapE'"))
    files.put("npy-negative_shape.npy", replaced(plain, b"(2, 3)", b"(-2,3)"))
    files.put("npy-program.npy", replaced(plain, b"(2, 3)", b"exit()"))


def npz(entries, method=zipfile.ZIP_STORED):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as file:
        for name, data in entries:
            file.writestr(zipfile.ZipInfo(name), data, method)
    return archive.getvalue()


@section
def npz_counts(files):
    data = npy("<f8", False, (2, 3), struct.pack("<6d", 1, 2, 3, 4, 5, 6))
    good = npz([("load.npy", data)])
    files.put("npz-good.npz", good)
    directory = good.index(b"PK\1\2")
    end = good.index(b"PK\5\6")
    files.cut("npz", ".npz", good, [3, 4, 20, 30, 38, 50, directory, directory + 20, end, end + 4])
    files.put("npz-empty.npz", npz([]))
    files.put("npz-two.npz", npz([("a.npy", data), ("b.npy", data)]))
    files.put("npz-no_array.npz", npz([("readme.txt", b"hello")]))
    files.put("npz-array_cut.npz", npz([("load.npy", data[:-1])]))
    files.put("npz-array_header_only.npz", npz([("load.npy", data[:80])]))
    files.put("npz-checksum.npz", replaced(good, struct.pack("<d", 5), struct.pack("<d", 7)))
    huge = npy("<f8", False, (2**20, 1, 3), bytes(1 << 22))
    files.put("npz-bomb.npz", npz([("load.npy", huge)], zipfile.ZIP_DEFLATED))
    before, line, behind = good[:directory], good[directory:end], good[end:]
    huge_sizes = line[:20] + b"\xf0\xff\xff\xff" * 2 + line[28:]
    files.put("npz-claims_4_gib.npz", before + huge_sizes + behind)
    far = line[:42] + b"\xf0\xff\xff\x7f" + line[46:]
    files.put("npz-offset_outside.npz", before + far + behind)


@section
def snapshot_counts(files):
    good = files.read("snapshot_empty.eplbs")
    files.put("snapshot-one_rank.eplbs", good)
    size = len(good)
    files.cut("snapshot", ".eplbs", good, [4, 8, 9, 16, 24, 40, 60, 80, size - 4, size - 1])
    files.put("snapshot-behind.eplbs", good + b"\0")
    for place in (8, 12, 20, 40, 60, len(good) - 1):
        changed = bytes([good[place] ^ 0xFF])
        files.put(f"snapshot-changed_{place:02d}.eplbs", good[:place] + changed + good[place + 1 :])


@section
def sglang_maps(files):
    rows = json.loads(files.read("format/sglang_placement.json"))["physical_to_logical_map"]
    key = "physical_to_logical_map"
    good = compact({key: [[0, 1, 2, 0], [3, 1, 2, 0]]})
    assert all(isinstance(slot, int) for row in rows for slot in row)
    files.put("sglang_map-good.json", good)
    files.put("sglang_map-recorded.json", compact({key: rows}))
    files.put("sglang_map-crlf.json", good.replace(b",", b",\r\n"))
    files.put("sglang_map-bom.json", BOM + good)
    files.cut("sglang_map", ".json", good, structure(good))
    json_traps(files, "sglang_map", ".json", good, b",2,")
    files.put("sglang_map-shape.json", compact({key: [[0, 1, 2, 0], [3, 1, 2]]}))
    files.put("sglang_map-fraction.json", compact({key: [[0, 1, 2.5, 0]]}))
    files.put("sglang_map-far.json", compact({key: [[0, 1, 4096, 0]]}))
    files.put("sglang_map-depth_3.json", compact({key: [[[0, 1, 2, 0]]]}))
    files.put("sglang_map-depth_1.json", compact({key: [0, 1, 2, 0]}))
    files.put("sglang_map-empty.json", compact({key: []}))
    files.put("sglang_map-other_key.json", compact({key: [[0, 1, 2, 0]], "layers": 1}))
    again = b'{"physical_to_logical_map":[[0,1,2,0]],'
    files.put("sglang_map-key_twice.json", replaced(good, b"{", again))
    files.put("sglang_map-slots_not_spread.json", compact({key: [[0, 1, 2, 0, 1]]}))
    files.put("sglang_map-deep.json", b'{"physical_to_logical_map":' + b"[" * 100000)


@section
def vllm_maps(files):
    good = compact([[0, 1, 2, 0], [3, 1, 2, 0]])
    files.put("vllm_map-good.json", good)
    files.put("vllm_map-crlf.json", good.replace(b",", b",\r\n"))
    files.cut("vllm_map", ".json", good, structure(good))
    json_traps(files, "vllm_map", ".json", good, b",2,")
    files.put("vllm_map-shape.json", compact([[0, 1, 2, 0], [3, 1, 2]]))
    files.put("vllm_map-depth_mixed.json", compact([[0, 1, 2, 0], 3]))
    files.put("vllm_map-empty.json", b"[]")


@section
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


@section
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


def tensors(header, data=b"", claim=None):
    """A safetensors file; of the header a value, or its text."""
    text = header if isinstance(header, bytes) else compact(header)
    return struct.pack("<Q", len(text) if claim is None else claim) + text + data


def tensor_traps(put, key, shape, dtype, size):
    """What can be wrong in any safetensors file that holds one tensor, of four items."""
    data = bytes(range(1, 5 * size))[: 4 * size] if dtype != "F32" else struct.pack("<4f", 1, 2, 3, 4)
    good = {"dtype": dtype, "shape": shape, "data_offsets": [0, 4 * size]}
    entry = compact(good)
    put("header_cut", tensors({key: good}, data)[:20])
    put("length_cut", tensors({key: good}, data)[:5])
    put("header_2_60", tensors({key: good}, data, 2**60))
    put("header_2_64", tensors({key: good}, data, 2**64 - 1))
    put("header_none", tensors(b"", data))
    put("header_list", tensors(b"[]", data))
    put("header_deep", tensors(b'{"a":' + b"[" * 100000, data))
    put("header_behind", tensors(compact({key: good}) + b"x", data))
    put("data_cut", tensors({key: good}, data[:-1]))
    put("data_behind", tensors({key: good}, data + b"\0"))
    put("key_twice", tensors(b'{"%s":%s,"%s":%s}' % (key.encode(), entry, key.encode(), entry), data))
    put("surrogate", tensors(b'{"\\ud800":%s}' % entry, data))
    put("zero_byte", tensors(b'{"%s\0":%s}' % (key.encode(), entry), data))
    changes = {
        "dtype_unknown": {"dtype": "Q7"},
        "dtype_number": {"dtype": 7},
        "dtype_bool": {"dtype": "BOOL"},
        "shape_2_60": {"shape": [2**60]},
        "shape_overflow": {"shape": [2**32, 2**32]},
        "shape_negative": {"shape": [-2]},
        "shape_word": {"shape": ["two"]},
        "shape_number": {"shape": 4},
        "shape_smaller": {"shape": [1]},
        "offsets_turned": {"data_offsets": [4 * size, 0]},
        "offsets_2_60": {"data_offsets": [2**60, 2**60 + 4 * size]},
        "offsets_outside": {"data_offsets": [1, 4 * size + 1]},
        "offsets_three": {"data_offsets": [0, size, 4 * size]},
        "offsets_negative": {"data_offsets": [-4 * size, 0]},
        "offsets_fraction": {"data_offsets": [0.5, 4 * size]},
    }
    for change, values in changes.items():
        put(change, tensors({key: {**good, **values}}, data))
    for missing in good:
        put(f"{missing}_missing", tensors({key: {k: v for k, v in good.items() if k != missing}}, data))


@section
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


@section
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


def fastdeploy(files):
    recorded = json.loads(files.read("format/fastdeploy_rearrange.json"))
    lists = ("tokens_per_expert_stats_list", "ep_rank_to_expert_id_list", "expert_id_to_ep_rank_array",
             "expert_in_rank_num_list")
    return {key: value[:1] if key in lists else value for key, value in recorded.items()}


@section
def fastdeploy_counts(files):
    good = fastdeploy(files)
    key = "tokens_per_expert_stats_list"
    text = compact({key: [[5, 6, 7]]})
    files.put("fastdeploy_counts-good.json", compact(good))
    files.put("fastdeploy_counts-crlf.json", compact(good).replace(b",", b",\r\n"))
    files.cut("fastdeploy_counts", ".json", text, structure(text))
    json_traps(files, "fastdeploy_counts", ".json", text, b",6,")
    files.put("fastdeploy_counts-key_missing.json", compact({k: v for k, v in good.items() if k != key}))
    files.put("fastdeploy_counts-shape.json", compact({key: [[5, 6, 7], [5, 6]]}))
    files.put("fastdeploy_counts-key_twice.json", replaced(text, b"{", b'{"%s":[[1]],' % key.encode()))


@section
def fastdeploy_maps(files):
    good = fastdeploy(files)
    files.put("fastdeploy_map-good.json", compact(good))
    text = compact(good)
    files.cut("fastdeploy_map", ".json", text, structure(text)[::9])
    slots = good["ep_rank_to_expert_id_list"][0]
    places = good["expert_id_to_ep_rank_array"][0]
    counts = good["expert_in_rank_num_list"][0]
    changes = {
        "slots_missing": {"ep_rank_to_expert_id_list": None},
        "slots_fewer": {"ep_rank_to_expert_id_list": [slots[:-1]]},
        "slots_empty": {"ep_rank_to_expert_id_list": []},
        "slots_word": {"ep_rank_to_expert_id_list": [["a"] + slots[1:]]},
        "slots_far": {"ep_rank_to_expert_id_list": [[4096] + slots[1:]]},
        "slots_negative": {"ep_rank_to_expert_id_list": [[-2] + slots[1:]]},
        "slots_fraction": {"ep_rank_to_expert_id_list": [[0.5] + slots[1:]]},
        "slots_2_60": {"ep_rank_to_expert_id_list": [[2**60] + slots[1:]]},
        "places_fewer": {"expert_id_to_ep_rank_array": [places[:-1]]},
        "places_contradict": {"expert_id_to_ep_rank_array": [[places[1], places[0]] + places[2:]]},
        "places_far": {"expert_id_to_ep_rank_array": [[[99] + places[0][1:]] + places[1:]]},
        "counts_contradict": {"expert_in_rank_num_list": [[counts[0] + 1] + counts[1:]]},
        "counts_none": {"expert_in_rank_num_list": [[0] + counts[1:]]},
    }
    for name, values in changes.items():
        changed = {k: v for k, v in {**good, **values}.items() if v is not None}
        files.put(f"fastdeploy_map-{name}.json", compact(changed))


@section
def lmdeploy(files):
    good = compact([row[:2] for row in json.loads(files.read("format/lmdeploy_statistic.json"))[:2]])
    files.put("lmdeploy-good.json", good)
    files.put("lmdeploy-crlf.json", good.replace(b",", b",\r\n"))
    files.cut("lmdeploy", ".json", good, structure(good))
    json_traps(files, "lmdeploy", ".json", compact([[5, 6, 7], [1, 2, 3]]), b",6,")
    files.put("lmdeploy-shape.json", compact([[5, 6], [5]]))
    files.put("lmdeploy-depth_1.json", compact([5, 6]))
    files.put("lmdeploy-object.json", compact({"a": [[5, 6]]}))
    files.put("lmdeploy-empty.json", b"[]")


@section
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
    files.put("vllm_stats-record_cut.jsonl", good + good[:40])
    files.put("vllm_stats-key_twice.jsonl", replaced(good, b'"step":7', b'"step":7,"step":7'))
    files.put("vllm_stats-other_records.jsonl", b'{"record_type":"note"}\n')


@section
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


@section
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


@section
def omni_maps(files):
    text = b"4 1 3\n1 1 0\n0 1 1\n1 0 1\n1 1 0\n"
    files.put("omni-good.txt", files.read("format/omni_placement.txt"))
    files.put("omni-crlf.txt", text.replace(b"\n", b"\r\n"))
    files.cut("omni", ".txt", text, [1, 3, 5, 8, 12, 24])
    changes = {
        "behind": (b"1 1 0\n", b"1 1 0 1\n"),
        "two": (b"0 1 1", b"0 2 1"),
        "negative": (b"0 1 1", b"0 -1 1"),
        "word": (b"0 1 1", b"0 x 1"),
        "ranks_2_60": (b"4 1 3", b"1152921504606846976 1 3"),
        "ranks_none": (b"4 1 3", b"0 1 3"),
        "experts_2_31": (b"4 1 3", b"4 1 2147483648"),
        "zero_byte": (b"0 1 1", b"0 1\0 1"),
    }
    for name, (old, new) in changes.items():
        files.put(f"omni-{name}.txt", replaced(text, old, new))
    binary = files.read("format/omni_placement.bin")
    files.put("omni-good.bin", binary)
    files.cut("omni", ".bin", binary, [2, 4, 8, 12, 14, 16, len(binary) - 4, len(binary) - 1])
    files.put("omni-behind.bin", binary + b"\0\0\0\0")
    files.put("omni-ranks_2_31.bin", b"\xff\xff\xff\x7f" + binary[4:])
    files.put("omni-layers_negative.bin", binary[:4] + b"\xff\xff\xff\xff" + binary[8:])
    files.put("omni-experts_2_31.bin", binary[:8] + b"\xff\xff\xff\x7f" + binary[12:])
    files.put("omni-cell_7.bin", binary[:12] + b"\7\0\0\0" + binary[16:])
    cells = struct.pack("<8i", 1, 0, 0, 1, 1, 1, 0, 1)
    shapes = {
        "2_60": (2**60, 1, 2),
        "dimensions_2": (4, 2),
        "larger": (4, 2, 2),
        "zero": (0, 1, 2),
    }
    for name, shape in shapes.items():
        files.put(f"omni-shape_{name}.npy", npy("<i4", False, shape, cells))
    files.put("omni-float.npy", npy("<f4", False, (4, 1, 2), cells))


@section
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


@section
def compressed(files):
    good = b"layer,expert,tokens\n0,0,1\n0,1,2\n"
    packed = gzip.compress(good, 0, mtime=0)  # stored: the same bytes by any zlib
    files.put("gzip-good.csv.gz", packed)
    size = len(packed)
    files.cut("gzip", ".csv.gz", packed, [1, 2, 5, 10, 12, 20, size - 8, size - 5, size - 1])
    files.put("gzip-checksum.csv.gz", packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:])
    files.put("gzip-length.csv.gz", packed[:-1] + b"\1")
    files.put("gzip-behind.csv.gz", packed + b"hello")
    files.put("gzip-two.csv.gz", packed + gzip.compress(b"1,0,3\n", mtime=0))
    files.put("gzip-block.csv.gz", packed[:10] + b"\7" + packed[11:])
    files.put("gzip-twice.csv.gz", gzip.compress(packed, 0, mtime=0))
    files.put("gzip-empty.csv.gz", gzip.compress(b"", mtime=0))
    bomb = gzip.compress(good + b"\n" * (8 << 20), 9, mtime=0)
    files.put("gzip-bomb.csv.gz", bomb)
    files.put("gzip-bomb_map.json.gz", gzip.compress(b"[" + b" " * (2 << 20), 9, mtime=0))
    # A frame that holds its bytes as they are: magic, descriptor, window or size, one raw block.
    raw = struct.pack("<I", len(good) << 3 | 1)[:3]
    frame = b"\x28\xb5\x2f\xfd\x20" + bytes([len(good)]) + raw + good
    files.put("zstd-good.csv.zst", frame)
    files.cut("zstd", ".csv.zst", frame, [3, 4, 5, 6, 8, 9, 20, len(frame) - 1])
    files.put("zstd-behind.csv.zst", frame + b"hello")
    files.put("zstd-content_more.csv.zst", frame[:5] + bytes([len(good) + 1]) + frame[6:])
    files.put("zstd-block_reserved.csv.zst", frame[:6] + bytes([frame[6] | 6]) + frame[7:])
    files.put("zstd-window_huge.csv.zst", b"\x28\xb5\x2f\xfd\x00\xff" + raw + good)
    # A list, and 64 MiB of blanks in blocks of one repeated byte.
    blocks = b"\x08\x00\x00[" + b"\x02\x00\x10 " * 511 + b"\x03\x00\x10 "
    files.put("zstd-bomb_map.json.zst", b"\x28\xb5\x2f\xfd\x00\x58" + blocks)


@section
def wait_times(files):
    good = b"\n".join(files.read("format/waits.csv").split(b"\n")[:4]) + b"\n"
    files.put("waits-good.csv", good)
    files.put("waits-crlf.csv", good.replace(b"\n", b"\r\n"))
    lines = good.split(b"\n")
    head = lines[2].rsplit(b",", 1)[0]
    for name, text in NUMBERS.items():
        files.put(f"waits-{name}.csv", b"\n".join(lines[:2] + [head + b"," + text] + lines[3:]))
    files.put("waits-fields_missing.csv", b"\n".join(lines[:2] + [head] + lines[3:]))
    files.put("waits-header_only.csv", lines[0] + b"\n")
    files.put("waits-empty.csv", b"\n")


def main():
    good, out, listing = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    files = Files(good, out)
    for make in SECTIONS:
        make(files)
    with open(listing, "w", encoding="ascii") as file:
        file.writelines(name + "\n" for name in files.names)


if __name__ == "__main__":
    main()
