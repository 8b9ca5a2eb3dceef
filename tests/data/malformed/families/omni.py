# SPDX-License-Identifier: MIT
"""omni-infer's arrays."""

import struct

from .arrays import npy
from .base import replaced


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
