"""A process that matches names with a pattern only a backtracking engine can compile.

Run as a script by ``pattern_workers``, and ended by it when time is up: nothing else stops such
an engine in the middle of a name. It reads jobs from standard input and writes answers to standard
output, both as a length (4 bytes, big-endian) and as many bytes. A job: seconds left as a double,
the pattern's size, the count of paths, all paths' offsets (int32), the pattern, the paths.
An answer: a byte for each path, 1 if it matches; empty if the time was up.
"""

from __future__ import annotations

import struct
import sys
from array import array
from functools import lru_cache
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from typing import BinaryIO

LENGTH = struct.Struct(">I")
JOB = struct.Struct(">dII")
MAX_MEMORY_BYTES = 1 << 30
"""Largest address space of a worker, should its engine take ever more."""
NICENESS = 5


def pack_job(seconds: float, pattern: str, count: int, offsets: bytes, paths: bytes) -> bytes:
    """Return a job's bytes, its length in front.

    Args:
        seconds: Its time limit; the sender ends the process if it takes longer.
        pattern: Matched with whole paths.
        count: Paths.
        offsets: The beginning of each in ``paths``, and the end: int32 in this machine's order.
        paths: Their UTF-8 bytes.
    """
    text = pattern.encode()
    head = JOB.pack(seconds, len(text), count)
    size = len(head) + len(offsets) + len(text) + len(paths)
    return b"".join((LENGTH.pack(size), head, offsets, text, paths))


def answer(job: bytes) -> bytes:
    """Return the answer to a job, without its length."""
    seconds, text_size, count = JOB.unpack_from(job)
    begin = JOB.size + 4 * (count + 1)
    offsets = array("i", job[JOB.size : begin])
    pattern = compiled(job[begin : begin + text_size].decode())
    paths = job[begin + text_size :]
    names = (paths[a:b].decode() for a, b in pairwise(offsets))
    end = perf_counter() + seconds
    try:
        return bytes(matches(pattern, name, end - perf_counter()) for name in names)
    except (TimeoutError, MemoryError):
        return b""


def matches(pattern: regex.Pattern[str], path: str, seconds: float) -> bool:
    """Tell whether a whole path matches.

    Raises:
        TimeoutError: It took longer than ``seconds``.
    """
    if seconds <= 0:
        raise TimeoutError
    return pattern.fullmatch(path, timeout=seconds) is not None


@lru_cache(maxsize=8)
def compiled(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern; the sender did so before, so that it is a valid one."""
    return regex.compile(pattern, cache_pattern=False)


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs until there are no more."""
    while head := jobs.read(LENGTH.size):
        result = answer(jobs.read(LENGTH.unpack(head)[0]))
        answers.write(LENGTH.pack(len(result)) + result)
        answers.flush()


def main() -> None:
    """Serve standard input, with less memory and less of the processor than the broker."""
    import os
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    os.nice(NICENESS)
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
