# SPDX-License-Identifier: MIT
"""Safetensors of any engine."""

import struct

from .base import compact


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
