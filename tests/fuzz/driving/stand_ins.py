"""Stand-ins for a broker's worker processes, with fast and repeatable answers.

The real work is slow and happens in separate processes.
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
    """Pattern workers that answer: some paths match, timeout, or the process ended."""

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
        pass


class StandInJudge:
    """Judge of schemas that answers: equal, new, unreadable or incompatible."""

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
        pass


class NoLag(EventLoopLag):
    """Lag meter without measurements: sampling five minutes ten times a second takes longer than an
    input.
    """

    def start(self) -> None:
        pass


@contextmanager
def stand_ins() -> Iterator[None]:
    """Use stand-ins in servers created within the block.

    The C library's heap is not inspected either, for the same reason.
    """
    with (
        patch.object(broker.service, "PatternWorkers", StandInWorkers),
        patch.object(broker.service, "ProcessJudge", StandInJudge),
        patch.object(server.web_port, "EventLoopLag", NoLag),
        patch.object(server.web_port, "c_heap", lambda: None),
    ):
        yield
