"""The samples of the client process, and its two parts with a client that is scripted."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from client.statistics.statistics import ClientStatistics
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from loadgen.scenarios.client_memory.program import Plan, Progress, consume, produce, sample_of
from tests.support.clocks.manual_clock import ManualClock
from tests.unit.client.statistics.test_statistics import CONSUMER, TOPIC

if TYPE_CHECKING:
    from client import Client

PLAN = Plan("pulsar://a:1", "bytes", ["t-0", "t-1"], 2, 1_000, 10, 3, 0.0, 0.0, 0)


class ScriptedClient:
    """Has consumers and producers that do at once what they are asked for."""

    def __init__(self) -> None:
        self.subscribed: list[str] = []
        self.sent: list[bytes] = []

    async def subscribe(self, topic: str, subscription: str, *_: object, **more: Any) -> Any:
        assert subscription == more["receiver_queue_policy"] == "bytes"
        self.subscribed.append(topic)
        return SimpleNamespace(receive=self._receive)

    async def _receive(self) -> Any:
        raise RuntimeError("stop here")

    async def create_producer(self, topic: str, **options: Any) -> Any:
        assert options == {
            "batching_enabled": False,
            "max_pending_messages": 0,
            "send_timeout_millis": 0,
        }
        return SimpleNamespace(send=self._send, topic=topic)

    async def _send(self, payload: bytes) -> None:
        self.sent.append(payload)


def test_a_sample_has_the_queues_of_all_consumers() -> None:
    # Given
    large = replace(TOPIC, queue_size=9, permits_outstanding=2, queue_growths=3, queue_shrinks=1)
    none = replace(TOPIC, queue_size=1, permits_outstanding=0, queue_growths=0, queue_shrinks=0)
    consumers = tuple(replace(CONSUMER, topics=(topic,)) for topic in (large, none, none))
    memory = MemoryLimitController(100, clock=ManualClock())
    memory.reserve_nowait(42)
    # When
    found = sample_of(ClientStatistics(memory.statistics(), (), consumers), Progress(messages=7))
    # Then
    sizes = [found[f"queue_{name}"] for name in ("least", "median", "most", "sum")]
    assert sizes == [1, 1, 9, 11]
    assert (found["granted_consumers"], found["growths"], found["shrinks"]) == (1, 3, 1)
    assert (found["usage_bytes"], found["messages"]) == (42, 7)
    assert found["resident_bytes"] > 10_000_000


async def test_consumers_of_a_topic_are_spread_over_the_run() -> None:
    client, progress = ScriptedClient(), Progress()
    await consume(cast("Client", client), PLAN, progress)
    assert client.subscribed == ["t-0", "t-1", "t-0", "t-1"]
    assert [got for _, got in progress.first] == [None] * 4


async def test_a_server_reads_again_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given
    signals: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: signals.append(number))
    client, progress = ScriptedClient(), Progress()
    # When
    await produce(cast("Client", client), replace(PLAN, policy="", stop_pid=1), progress)
    # Then
    assert signals[0] == signal.SIGSTOP
    assert signals[-1] == signal.SIGCONT
    assert client.sent == [bytes(10)] * 6
    assert progress.messages == 6
    # When
    monkeypatch.setattr(client, "_send", client._receive)
    with pytest.raises(ExceptionGroup):
        await produce(cast("Client", client), replace(PLAN, policy="", stop_pid=1), progress)
    # Then
    assert signals[-1] == signal.SIGCONT
