# SPDX-License-Identifier: MIT
"""CSV and JSON lines: counts and wait times."""

import json

from .base import BOM, NUMBERS, compact, json_traps, replaced, structure


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
