# SPDX-License-Identifier: MIT
"""Snapshots, and what gzip and zstd pack."""

import gzip
import struct


def snapshot_counts(files):
    good = files.read("snapshot_empty.eplbs")
    files.put("snapshot-one_rank.eplbs", good)
    size = len(good)
    files.cut("snapshot", ".eplbs", good, [4, 8, 9, 16, 24, 40, 60, 80, size - 4, size - 1])
    files.put("snapshot-behind.eplbs", good + b"\0")
    for place in (8, 12, 20, 40, 60, len(good) - 1):
        changed = bytes([good[place] ^ 0xFF])
        files.put(f"snapshot-changed_{place:02d}.eplbs", good[:place] + changed + good[place + 1 :])


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
