"""A worker process that matches topic names with a backtracking engine.

Run as a script by ``backtracking.py``, and killed on timeout: only the end of the process stops the
engine within a name. The worker reads jobs from standard input and writes answers to standard
output, both as a length (4 bytes, big-endian) and the bytes. A job: time limit as a double, the
pattern's size, the count of paths, all paths' offsets (int32), the pattern, the paths. An answer:
the time taken as a double, and a byte for each path, 1 for a match; no bytes after running out of
time or memory. Times are seconds of the worker's processor time, independent of machine load.
"""

from __future__ import annotations

import signal
import struct
import sys
from array import array
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from time import process_time
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

LENGTH = struct.Struct(">I")
JOB = struct.Struct(">dII")
TOOK = struct.Struct(">d")
MAX_MEMORY_BYTES = 1 << 30
"""Largest address space of a worker, as the engine's memory may grow without bound."""
MOST_SECONDS = 1e6
"""Longest timer in seconds, as the kernel accepts no much larger number."""


def pack_job(seconds: float, pattern: str, count: int, offsets: bytes, paths: bytes) -> bytes:
    """Encode a matching job for a worker as bytes, which begin with their length.

    Args:
        seconds: Time limit; the sender ends the process after a much longer time.
        pattern: Matched with whole paths.
        count: Number of paths.
        offsets: Start of each path in ``paths``, and the end: int32 in machine order.
        paths: UTF-8 bytes of the paths.
    """
    text = pattern.encode()
    head = JOB.pack(seconds, len(text), count)
    size = len(head) + len(offsets) + len(text) + len(paths)
    return b"".join((LENGTH.pack(size), head, offsets, text, paths))


def answer(job: bytes) -> bytes:
    """Run a matching job; return the encoded answer, which does not begin with its length."""
    seconds, text_size, count = JOB.unpack_from(job)
    begin = JOB.size + 4 * (count + 1)
    offsets = array("i", job[JOB.size : begin])
    pattern = compiled(job[begin : begin + text_size].decode())
    begun = process_time()
    try:
        with time_limit(seconds):
            mask = matched(pattern, offsets, job[begin + text_size :])
    except (TimeoutError, MemoryError):
        mask = b""
    return TOOK.pack(process_time() - begun) + mask


def matched(pattern: regex.Pattern[str], offsets: array[int], paths: bytes) -> bytes:
    """Match each path completely; return a byte for each path, 1 for a match."""
    match = pattern.fullmatch
    if not paths.isascii():
        return bytes([match(paths[a:b].decode()) is not None for a, b in pairwise(offsets)])
    text = paths.decode()
    return bytes([match(text[a:b]) is not None for a, b in pairwise(offsets)])


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError if the ``with`` block uses more than ``seconds`` of processor time.

    The engine checks for signals while matching. (The engine's own limit checks the clock before
    each name, at four times the cost of a match.)
    """
    signal.signal(signal.SIGPROF, _time_is_up)
    signal.setitimer(signal.ITIMER_PROF, min(seconds, MOST_SECONDS))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)


def _time_is_up(*_: object) -> None:
    raise TimeoutError


@lru_cache(maxsize=8)
def compiled(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern whose syntax the broker has already checked."""
    return regex.compile(pattern, cache_pattern=False)


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Run the matching jobs of an input and write their answers, until the input ends."""
    while head := jobs.read(LENGTH.size):
        result = answer(jobs.read(LENGTH.unpack(head)[0]))
        answers.write(LENGTH.pack(len(result)) + result)
        answers.flush()


def main() -> None:
    """Run matching jobs from standard input, in a process with limited memory."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
