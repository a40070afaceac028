"""Mutations of frame streams: mostly valid frames, occasionally libFuzzer's byte mutations."""

import random
import struct
from collections.abc import Callable

from tests.fuzz.inputs.commands import CommandMaker

_LENGTHS = struct.Struct(">II")
_BYTES_SHARE = 0.5
_MOST_FRAMES = 64


def mutated_stream(
    data: bytes, most_bytes: int, seed: int, bytes_mutated: Callable[[bytes, int], bytes]
) -> bytes:
    choices = random.Random(seed)
    if choices.random() < _BYTES_SHARE:
        return bytes_mutated(data, most_bytes)
    maker, frames = CommandMaker(choices), split(data)
    at = choices.randrange(len(frames) + 1)
    what = choices.random()
    if what < 0.4 or at == len(frames):
        frames.insert(at, with_lengths(maker.made()))
    elif what < 0.75 and len(frames[at]) > _LENGTHS.size:
        frames[at] = with_lengths(maker.changed(frames[at][_LENGTHS.size :]))
    elif what < 0.85:
        frames.insert(at, choices.choice(frames))
    else:
        del frames[at]
    return b"".join(frames)[:most_bytes]


def split(data: bytes) -> list[bytes]:
    """Cut a stream at its length fields; the last part may be arbitrary bytes."""
    frames: list[bytes] = []
    at = 0
    while at + 4 <= len(data) and len(frames) < _MOST_FRAMES:
        end = at + 4 + int.from_bytes(data[at : at + 4])
        frames.append(data[at:end])
        at = end
    if at < len(data):
        frames.append(data[at:])
    return frames


def with_lengths(command: bytes) -> bytes:
    return _LENGTHS.pack(len(command) + 4, len(command)) + command
