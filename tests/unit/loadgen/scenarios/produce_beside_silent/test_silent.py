"""A silent producer sends as fast as it is taken, and notes since when it is not."""

from __future__ import annotations

import asyncio

import pytest

from loadgen.clients.context import ClientContext, RunTime
from loadgen.clients.records import RequestCounters
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.produce_beside_silent.messages import send_frame
from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
from loadgen.scenarios.produce_beside_silent.silent import SilentProducer
from loadgen.stuck_peers.close_watch import CloseWatch
from loadgen.stuck_peers.scenario import peer_plans
from loadgen.stuck_peers.summary import PeerEnd
from tests.support.clocks.manual_clock import ManualClock

MESSAGES = 120


class KeptTransport(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


class Desk:
    """A silent producer that is open, and what it wrote since."""

    def __init__(self) -> None:
        scenario = SilentScenario(
            service_url="pulsar://127.0.0.1:1",
            namespaces=(NamespaceExpectation(name="load/ns"),),
            silent_producers=1,
            silent_consumers=0,
            silent_messages=MESSAGES,
            message_bytes=10,
        )
        self.clock = ManualClock()
        time = RunTime(self.clock.now, self.clock.now())
        context = ClientContext(scenario, RequestCounters(), lambda: None, time, self.clock)
        (plan,) = peer_plans(scenario, 0, 1)
        self.producer = SilentProducer(plan, context, CloseWatch(self.clock, loopback=False))
        self.transport = KeptTransport()
        self.producer.connection_made(self.transport)
        self.producer.handshake.set_result("s")
        self.transport.written = b""

    def turn(self) -> int:
        """Let a turn of the loop pass; return how many messages were sent so far."""
        self.clock.advance(0)
        return self.producer.record.sent


@pytest.fixture
async def desk() -> Desk:
    return Desk()


async def test_it_publishes_in_turns_until_all_is_sent(desk: Desk) -> None:
    # Given
    assert desk.turn() == 0
    # When
    desk.producer.begin()
    for _ in range(5):
        desk.turn()
    # Then
    assert desk.transport.written == b"".join(send_frame(n, bytes(10)) for n in range(MESSAGES))
    assert desk.producer.record.held_up_seconds is None


async def test_it_waits_while_nothing_is_taken_and_notes_since_when(desk: Desk) -> None:
    # Given
    desk.clock.advance(3)
    desk.producer.begin()
    # When
    desk.producer.pause_writing()
    desk.clock.advance(5)
    # Then
    assert desk.turn() == 0
    assert desk.producer.record.held_up_seconds == 3
    # and goes on when it is
    desk.producer.resume_writing()
    assert desk.turn() == MESSAGES
    assert desk.producer.record.held_up_seconds is None


async def test_leaving_does_not_undo_that_it_was_held_up(desk: Desk) -> None:
    # Given
    desk.producer.begin()
    desk.producer.pause_writing()
    desk.clock.advance(4)
    # When
    desk.producer.leave()
    desk.producer.resume_writing()
    # Then
    record = desk.producer.record
    assert (record.end, record.held_up_seconds, record.gone_seconds) == (PeerEnd.LEFT, 0, 4)
    assert desk.transport.aborted
