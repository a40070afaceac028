"""A worker process that checks Avro definitions, from requests on its standard input.

The results go to standard output. The broker kills the process at a deadline: a malicious
definition can take forever to compare.
"""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING

from broker.schemas.avro.jobs import LENGTH, Answer, Job
from broker.schemas.avro.judging import judged

if TYPE_CHECKING:
    from typing import BinaryIO

MAX_MEMORY_BYTES = 1 << 30
"""Largest address space of a worker."""


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Check the definitions of an input and write the results, until the input ends."""
    while head := jobs.read(LENGTH.size):
        result = _answer(jobs.read(LENGTH.unpack(head)[0])).packed()
        answers.write(LENGTH.pack(len(result)) + result)
        answers.flush()


def _answer(data: bytes) -> Answer:
    try:
        return judged(Job.of(data))
    except MemoryError:
        return Answer(unreadable="judging it takes too much memory")
    except RecursionError:
        return Answer(unreadable="it is nested too deeply")


def main() -> None:
    """Check Avro definitions from standard input, in a process with limited memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    serve(sys.stdin.buffer, sys.stdout.buffer)
