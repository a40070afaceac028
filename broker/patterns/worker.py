"""A process that matches names with a pattern only a backtracking engine can compile.

Run as a script by ``pattern_workers``, and ended by it when time is up: nothing else stops such
an engine in the middle of a name. It reads jobs from standard input and writes answers to standard
output, both as a length (4 bytes, big-endian) and as many bytes. A job: its time limit as a double,
the pattern's size, the count of paths, all paths' offsets (int32), the pattern, the paths.
An answer: the time it took as a double, and a byte for each path, 1 if it matches; none if the
time was up, or memory. Times are seconds of this process's processor time: how busy the machine is
decides nothing.
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
"""Largest address space of a worker, should its engine take ever more."""
MOST_SECONDS = 1e6
"""The longest that a timer is set to: the kernel knows no much larger numbers."""


def pack_job(seconds: float, pattern: str, count: int, offsets: bytes, paths: bytes) -> bytes:
    """Return a job's bytes, its length in front.

    Args:
        seconds: Its time limit; the sender ends the process if it takes much longer.
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
    begun = process_time()
    try:
        with time_limit(seconds):
            mask = matched(pattern, offsets, job[begin + text_size :])
    except (TimeoutError, MemoryError):
        mask = b""
    return TOOK.pack(process_time() - begun) + mask


def matched(pattern: regex.Pattern[str], offsets: array[int], paths: bytes) -> bytes:
    """Return a byte for each path: 1 if all of it matches."""
    match = pattern.fullmatch
    if not paths.isascii():
        return bytes([match(paths[a:b].decode()) is not None for a, b in pairwise(offsets)])
    text = paths.decode()
    return bytes([match(text[a:b]) is not None for a, b in pairwise(offsets)])


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError when a block has had so much of the processor.

    The engine looks for signals meanwhile. (Its own limit, for a name, looks at the clock before
    each: that takes four times as long as to match it.)
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
    """Compile a pattern; the sender did so before, so that it is a valid one."""
    return regex.compile(pattern, cache_pattern=False)


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs until there are no more."""
    while head := jobs.read(LENGTH.size):
        result = answer(jobs.read(LENGTH.unpack(head)[0]))
        answers.write(LENGTH.pack(len(result)) + result)
        answers.flush()


def main() -> None:
    """Serve standard input, with less memory than the broker."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
