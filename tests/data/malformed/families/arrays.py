# SPDX-License-Identifier: MIT
""".npy and .npz."""

import io
import struct
import zipfile

from .base import replaced


def npy(descr, order, shape, data, version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    size = 10 if version == 1 else 12
    header += b" " * (-(size + len(header) + 1) % 64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def npz(entries, method=zipfile.ZIP_STORED):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as file:
        for name, data in entries:
            file.writestr(zipfile.ZipInfo(name), data, method)
    return archive.getvalue()


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
