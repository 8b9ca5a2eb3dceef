# SPDX-License-Identifier: MIT
"""SGLang's JSON and .pt."""

import io
import json
import struct
import zipfile

from .arrays import npz
from .base import BOM, compact, json_traps, replaced, structure


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
