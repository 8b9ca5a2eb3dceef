# SPDX-License-Identifier: MIT
"""What the makers share: files, and what can be wrong in any text."""

import json
import os

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
