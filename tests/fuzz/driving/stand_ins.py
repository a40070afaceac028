"""Stand-ins for what is slow: the processes that a broker asks answer quickly, and alike.

What they do in earnest takes as long as it takes, in processes of their own.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import broker.service
import server.web_port
from broker.schemas.avro.jobs import Answer, Job
from broker.schemas.avro.judge import judgement
from broker.schemas.errors import SchemaRefusal, SchemaRefusedError
from server.metrics.process import EventLoopLag
from server.tasks.worker_processes import WorkerFailedError


class StandInWorkers:
    """Answers for pattern workers: some paths match, the time is up, or the process has ended."""

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[StandInWorkers]:
        yield self

    async def matching(self, pattern: str, paths: Any, seconds: float) -> Any:
        del seconds
        chosen = zlib.crc32(pattern.encode(errors="replace"))
        if chosen % 7 == 0:
            return None
        if chosen % 7 == 1:
            raise WorkerFailedError("a pattern worker ended")
        return np.arange(len(paths)) % 2 == chosen % 2

    async def close(self) -> None:
        """Do nothing."""


class StandInJudge:
    """Answers for the judge of schemas: the same, new, unreadable or incompatible."""

    def __init__(self, clock: object) -> None:
        del clock

    async def judge(
        self, schema: Any, alike: Sequence[Any], compared: Sequence[Any], strategy: str
    ) -> int | None:
        definitions = [one.data for one in alike], [one.data for one in compared]
        chosen = zlib.crc32(Job(schema.data, *definitions, strategy).packed()) % 8
        if chosen == 0:
            text = "the check of this schema takes more than 10 s"
            raise SchemaRefusedError(SchemaRefusal(text, invalid=True))
        same = next((at for at, one in enumerate(alike) if one.data == schema.data), None)
        answer = Answer(
            same=same,
            unreadable="no definition" if chosen == 1 else "",
            incompatible="not compatible" if chosen == 2 and compared else "",
            is_union=chosen == 3,
        )
        return judgement(schema.kind, strategy, answer)

    async def close(self) -> None:
        """Do nothing."""


class NoLag(EventLoopLag):
    """Measures nothing: there is no loop of its own that could be late, and five minutes of looking
    ten times a second take longer than an input."""

    def start(self) -> None:
        """Do nothing."""


@contextmanager
def stand_ins() -> Iterator[None]:
    """Let servers that are made in this block ask stand-ins.

    Nobody looks at the C library's heap either, which takes longer than an input as well.
    """
    with (
        patch.object(broker.service, "PatternWorkers", StandInWorkers),
        patch.object(broker.service, "ProcessJudge", StandInJudge),
        patch.object(server.web_port, "EventLoopLag", NoLag),
        patch.object(server.web_port, "c_heap", lambda: None),
    ):
        yield
