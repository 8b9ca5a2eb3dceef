# SPDX-License-Identifier: MIT
"""Counts test cases in one testlog.json of Meson: prints `passed failed skipped`.

A program that uses CMocka counts by its cases, every other test as one. A program that fails
although its cases passed (a leak, a crash at the end) counts as one failed case more.

usage: python3 tools/count_tests.py build/meson-logs/testlog.json
"""
import json
import re
import sys

GOOD = ("OK", "EXPECTEDFAIL")


def count(record):
    output = record.get("stdout") or ""
    result = record["result"]
    cases = len(re.findall(r"^\[ RUN      \] ", output, re.MULTILINE))
    if cases == 0:
        return (result in GOOD, result not in GOOD and result != "SKIP", result == "SKIP")
    passed = len(re.findall(r"\[       OK \] ", output))
    skipped = len(re.findall(r"\[  SKIPPED \] (?!\d+ test\(s\))", output))
    failed = max(cases - passed - skipped, 0 if result in GOOD else 1)
    return (passed, failed, skipped)


with open(sys.argv[1], encoding="utf-8") as log:
    counts = [count(json.loads(line)) for line in log if line.strip()]
print(*(sum(column) for column in zip((0, 0, 0), *counts)))
