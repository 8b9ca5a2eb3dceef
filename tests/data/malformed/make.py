#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes malformed files from the good ones, always the same bytes.

usage: make.py GOOD OUT LIST

GOOD is tests/data; the files are written to the directory OUT, their names to the file LIST. The
modules in families/ have a function for each format, and expected.txt says what must become of each
file. Needs nothing but Python.
"""

import shutil
import sys

sys.dont_write_bytecode = True  # nothing appears beside the sources

from families import arrays, ascend, fastdeploy, omni, packed, sglang, text, trtllm, vllm
from families.base import Files

# In the order of expected.txt.
MAKERS = [
    text.csv_counts,
    text.jsonl_counts,
    sglang.sglang_counts,
    sglang.sglang_pt,
    arrays.npy_counts,
    arrays.npz_counts,
    packed.snapshot_counts,
    sglang.sglang_maps,
    vllm.vllm_maps,
    ascend.ascend_maps,
    trtllm.trtllm_maps,
    vllm.vllm_load,
    trtllm.trtllm_recordings,
    fastdeploy.fastdeploy_counts,
    fastdeploy.fastdeploy_maps,
    fastdeploy.lmdeploy,
    vllm.vllm_stats,
    vllm.vllm_dumps,
    vllm.vllm_mappings,
    omni.omni_maps,
    ascend.mindie,
    packed.compressed,
    text.wait_times,
]


def main():
    good, out, listing = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    files = Files(good, out)
    for make in MAKERS:
        make(files)
    with open(listing, "w", encoding="ascii") as file:
        file.writelines(name + "\n" for name in files.names)


if __name__ == "__main__":
    main()
