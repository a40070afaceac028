"""Losses, repetitions and disorder on the way from a broker are found."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.executors.worker import run_task
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.produce_consume.scenario import ProduceConsumeScenario
from loadgen.scenarios.watch_churn.scenario import WatchChurnScenario
from loadgen.tasks.task import TaskPlan
from proto.frames import Frame
from tests.support.peers.stand_in_broker import topic_names
from tests.support.processes.cluster import cluster

if TYPE_CHECKING:
    from collections.abc import Callable

SPOILS: dict[str, Callable[[bytes, bytes], tuple[bytes, ...]]] = {
    "lost": lambda first, second: (second,),
    "doubled": lambda first, second: (first, first, second),
    "swapped": lambda first, second: (second, first),
}
"""Frames that are sent instead of a connection's first two of a kind."""


class Relay:
    """Passes everything on to a broker and back, but two frames of a kind as it is told."""

    def __init__(self, service_url: str, kind: int, way: str) -> None:
        self._behind = service_url.removeprefix("pulsar://").split(":")
        self._kind = kind
        self._spoil = SPOILS[way]
        self._writers: list[asyncio.StreamWriter] = []
        self._ways: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"pulsar://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._ways, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_connection(*self._behind)
        self._writers += [writer, behind_writer]
        for way in (self._forth(reader, behind_writer), self._back(behind_reader, writer)):
            self._ways.append(asyncio.create_task(way))

    async def _forth(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held: list[bytes] = []
        while len(held) < 2:
            frame = await self._frame(reader)
            if Frame(len(frame) - 4, [memoryview(frame)[4:]]).command_type() != self._kind:
                writer.write(frame)
            else:
                held.append(frame)
        writer.write(b"".join(self._spoil(*held)))
        await self._forth(reader, writer)

    async def _frame(self, reader: asyncio.StreamReader) -> bytes:
        length = await reader.readexactly(4)
        return length + await reader.readexactly(int.from_bytes(length, "big"))


async def wrong_rows(scenario: Any) -> list[str]:
    """Run a scenario, and return what was wrong by its own judgement."""
    plan = TaskPlan(scenario=scenario, task=0, tasks=1)
    report = await asyncio.to_thread(run_task, plan, lambda now: now)
    rows = report.rows.select(["outcome", "reason"]).to_pylist()
    return [row["reason"] for row in rows if row["outcome"] == "wrong"]


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("lost", "never got message 1, which has a receipt"),
        ("doubled", "got message 1 twice"),
        ("swapped", "got message 1 behind message 2"),
    ],
)
async def test_a_spoiled_delivery_is_a_wrong_answer(way: str, said: str) -> None:
    async with cluster() as parts:
        real = parts.broker.service_url
        async with Relay(real, pb.BaseCommand.MESSAGE, way) as url:
            wrong = await wrong_rows(
                ProduceConsumeScenario(
                    service_url=url,
                    namespaces=(NamespaceExpectation(name="public/default"),),
                    clients=1,
                    messages_per_second=100,
                    produce_seconds=0.05,
                    timeout_seconds=5.0,
                )
            )
    assert wrong == [f"subscription 0 of producer 0 {said}"]


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("lost", "was never told that persistent://load/a/churn-000000 was created"),
        ("doubled", "was told again that persistent://load/a/churn-000000 was created"),
    ],
)
async def test_a_spoiled_update_is_a_wrong_answer(way: str, said: str) -> None:
    async with cluster({"load/a": topic_names("load/a", 3)}) as parts:
        real = parts.broker.service_url
        async with Relay(real, pb.BaseCommand.WATCH_TOPIC_UPDATE, way) as url:
            wrong = await wrong_rows(
                WatchChurnScenario(
                    service_url=url,
                    namespaces=(NamespaceExpectation(name="load/a"),),
                    clients=1,
                    admin_url=parts.broker.web_service_url,
                    changes_per_second=20,
                    topic_seconds=0.2,
                    churn_seconds=0.4,
                    timeout_seconds=5.0,
                )
            )
    assert f"watcher 0 of load/a {said}" in wrong
