"""Changes to cells or bytes of a prepared SQLite file.

An input is a list of changes: five bytes each, then the bytes of a byte run.
"""

import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

BYTES, CELL = 0, 1
VALUES: tuple[Any, ...] = (
    0, -1, 2**62, 1.5, "", "x", "a/b/c", "[]", "{}", "{", '["r"]', "null", "5", b"", b"\xff", "ä",
    b"persistent://public/default/t", "public/default", b"t-partition-1", '{"a": 1}', "true", b"5",
)  # fmt: skip
_HEAD = struct.Struct(">BHBB")
_MOST_CHANGED = 16
Cells = tuple[tuple[str, str], ...]


def change(path: Path, data: bytes, cells: Cells) -> None:
    """Apply an input's changes; changes after a corrupting change are dropped."""
    content = bytearray(path.read_bytes())
    changed, at = [], 0
    while at + _HEAD.size <= len(data):
        what, first, second, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if what % 2 == CELL:
            changed.append((cells[first % len(cells)], VALUES[second % len(VALUES)]))
            continue
        size %= _MOST_CHANGED
        place = (first * 256 + second) % len(content)
        run = data[at : at + size]
        content[place : place + len(run)] = run
        at += size
    path.write_bytes(content)
    if changed:
        connection = sqlite3.connect(path)
        try:
            for (table, column), value in changed:
                connection.execute(f"UPDATE OR IGNORE {table} SET {column}=?", (value,))
            connection.commit()
        except (sqlite3.Error, UnicodeDecodeError):
            pass
        finally:
            connection.close()


def seeds(cells: Cells) -> list[bytes]:
    """Return an input without changes, an input for each cell, and an input of bytes."""
    each = [_HEAD.pack(CELL, cell, 4, 0) for cell in range(len(cells))]
    return [b"", *each, _HEAD.pack(BYTES, 16, 0, 3) + b"abc"]


def bytes_at(place: int, run: bytes) -> bytes:
    """Return a change of bytes."""
    return _HEAD.pack(BYTES, place >> 8, place & 0xFF, len(run)) + run


def one_more_or_less(data: bytes, choices: Random, content: Sequence[int]) -> bytes:
    """Return an input with a change added or removed.

    Args:
        data: The input.
        choices: Source of randomness.
        content: The file: bytes are changed in its non-zero parts.
    """
    if data and choices.random() < 0.3:
        return data[_HEAD.size :]
    if choices.random() < 0.5:
        return _HEAD.pack(CELL, choices.randrange(999), choices.randrange(256), 0) + data
    place = choices.randrange(len(content))
    while not content[place]:
        place = choices.randrange(len(content))
    if choices.random() < 0.5:
        return bytes_at(place, bytes((content[place] ^ 1 << choices.randrange(8),))) + data
    return bytes_at(place, choices.randbytes(choices.randrange(1, 8))) + data
