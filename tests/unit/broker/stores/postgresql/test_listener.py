"""The listening connection: how loss is noticed and the connection restored."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from broker.stores.changes import StoreError
from broker.stores.postgresql.listener import (
    ANSWER_SECONDS,
    HEARTBEAT_SECONDS,
    LONGEST_RETRY_SECONDS,
    NotificationListener,
)
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle


class FakeConnection:
    """A connection that a test notifies, breaks or silences."""

    def __init__(self) -> None:
        self.listeners: dict[str, Callable[..., None]] = {}
        self.ended: list[Callable[[object], None]] = []
        self.asked = 0
        self.answers = asyncio.Event()
        self.answers.set()
        self.closed = False

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None:
        self.listeners[channel] = callback

    def add_termination_listener(self, callback: Callable[[object], None]) -> None:
        self.ended.append(callback)

    async def execute(self, _: str) -> str:
        self.asked += 1
        await self.answers.wait()
        return "SELECT 1"

    def is_closed(self) -> bool:
        return self.closed

    def terminate(self) -> None:
        self.closed = True
        for callback in self.ended:
            callback(self)


class FakeServer:
    """Makes connections, or refuses to."""

    def __init__(self) -> None:
        self.made: list[FakeConnection] = []
        self.up = True
        self.attempts = 0

    async def connect(self) -> FakeConnection:
        self.attempts += 1
        if not self.up:
            raise StoreError("out of reach")
        self.made.append(FakeConnection())
        return self.made[-1]


class Listening:
    """A listener and the received notifications."""

    def __init__(self) -> None:
        self.server, self.clock = FakeServer(), ManualClock()
        self.heard: list[str] = []
        self.reconnections = 0
        self.listener = NotificationListener(
            self.server.connect, {"topics": self.heard.append}, self.again, self.clock
        )

    def again(self) -> None:
        self.reconnections += 1

    async def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await settle()


@pytest.fixture
async def case() -> AsyncIterator[Listening]:
    """A listener that has opened its connection."""
    listening = Listening()
    await listening.listener.open()
    await settle()
    yield listening
    await listening.listener.close()


async def test_notifications_reach_the_callback_of_their_channel(case: Listening) -> None:
    case.server.made[0].listeners["topics"](None, 1, "topics", "7 3")
    assert case.heard == ["7 3"]
    assert case.reconnections == 0


async def test_opening_fails_when_the_server_is_unreachable() -> None:
    case = Listening()
    case.server.up = False
    with pytest.raises(StoreError):
        await case.listener.open()
    await case.listener.close()


async def test_a_lost_connection_is_restored_and_reported(case: Listening) -> None:
    case.server.made[0].terminate()
    await settle()
    assert case.listener.connected
    assert case.reconnections == 1
    case.server.made[1].listeners["topics"](None, 1, "topics", "7 4")
    assert case.heard == ["7 4"]


async def test_reconnection_attempts_back_off_but_never_end(case: Listening) -> None:
    case.server.up = False
    case.server.made[0].terminate()
    await settle()
    assert not case.listener.connected
    for _ in range(600):
        await case.advance(0.1)
    in_a_minute = case.server.attempts
    assert 60 / LONGEST_RETRY_SECONDS < in_a_minute < 30
    case.server.up = True
    await case.advance(LONGEST_RETRY_SECONDS)
    assert case.listener.connected
    assert case.reconnections == 1


async def test_a_connection_that_answers_heartbeats_is_kept(case: Listening) -> None:
    for _ in range(3):
        await case.advance(HEARTBEAT_SECONDS)
    assert case.server.made[0].asked == 3
    assert case.server.attempts == 1


async def test_a_connection_without_a_heartbeat_answer_is_replaced_after_a_timeout(
    case: Listening,
) -> None:
    case.server.made[0].answers.clear()
    await case.advance(HEARTBEAT_SECONDS)
    await case.advance(ANSWER_SECONDS / 2)
    assert case.server.attempts == 1
    await case.advance(ANSWER_SECONDS / 2)
    assert case.server.made[0].closed
    assert case.listener.connected
    assert case.reconnections == 1


async def test_a_closed_listener_does_not_reconnect(case: Listening) -> None:
    await case.listener.close()
    await case.advance(60)
    assert case.server.made[0].closed
    assert case.server.attempts == 1
    assert not case.listener.connected
