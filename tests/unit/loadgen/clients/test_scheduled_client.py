"""A scheduled client asks when a request is due, whatever became of the ones before."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.clients.connection import request_frame
from loadgen.clients.context import ClientContext, RunTime
from loadgen.clients.records import Outcome, RequestCounters
from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.clients.scheduled_client import ScheduledClient, ScheduledConnection
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.stuck.scenario import StuckScenario
from proto.frames import encode_command
from proto.parsing.parser import parse_command
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.stand_in_broker import listing_body, listing_frame, topic_names

NAMES = topic_names("load/ns", 300, 100)
BODY = listing_body(NAMES)
CONNECTED = encode_command(
    pb.BaseCommand(
        type=pb.BaseCommand.CONNECTED,
        connected=pb.CommandConnected(server_version="s", protocol_version=20),
    )
)


@dataclass
class Transport:
    """Keeps what was written, and whether reading is paused."""

    written: list[pb.BaseCommand] = field(default_factory=list)
    reading: bool = True
    aborted: bool = False

    def write(self, data: bytes) -> None:
        self.written.append(parse_command(data[8:]))

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    @property
    def requests(self) -> list[int]:
        return [
            each.getTopicsOfNamespace.request_id
            for each in self.written
            if each.type == pb.BaseCommand.GET_TOPICS_OF_NAMESPACE
        ]


class Harness:
    """One client that lists every second for three seconds, and a clock in the test's hands."""

    def __init__(self, **changes) -> None:
        scenario = StuckScenario(
            **{
                "service_url": "pulsar://127.0.0.1:1",
                "namespaces": (NamespaceExpectation(name="load/ns"),),
                "clients": 1,
                "duration_seconds": 3.0,
                "timeout_seconds": 10.0,
                "stuck_peers": 0,
                **changes,
            }
        )
        self.clock = ManualClock()
        self.counters = RequestCounters()
        self.finished = 0
        self.reconnects = 0
        self.context = ClientContext(
            scenario,
            self.counters,
            self._finish,
            RunTime(self.clock.now, self.clock.now()),
            self.clock,
        )
        (plan,) = scheduled_plans(scenario, 0, 1)
        frame = partial(request_frame, plan.namespace.name, scenario.pattern)
        due = due_moments(scenario, plan.client)
        self.client = ScheduledClient(plan, self.context, due, frame, self._reconnect)
        self.connections: list[tuple[ScheduledConnection, Transport]] = []

    def _finish(self) -> None:
        self.finished += 1

    def _reconnect(self, client: ScheduledClient) -> None:
        assert client is self.client
        self.reconnects += 1

    def connect(self) -> Harness:
        connection, transport = ScheduledConnection(self.client), Transport()
        self.connections.append((connection, transport))
        connection.connection_made(transport)
        self.receive(CONNECTED)
        self.client.connected(connection)
        return self

    def begun(self) -> Harness:
        self.connect()
        self.client.begin()
        self.clock.advance(0)
        return self

    def receive(self, data: bytes) -> int:
        """Give the newest connection what it is ready to take; return how many bytes that was."""
        connection, transport = self.connections[-1]
        taken = 0
        while taken < len(data) and transport.reading and not transport.aborted:
            room = connection.get_buffer(-1)
            chunk = data[taken : taken + len(room)]
            room[: len(chunk)] = chunk
            connection.buffer_updated(len(chunk))
            taken += len(chunk)
        return taken

    def answer(self, request_id: int) -> None:
        self.receive(listing_frame(request_id, BODY))

    def refuse(self, request_id: int) -> None:
        error = pb.CommandError(
            request_id=request_id, error=pb.ServerError.TooManyRequests, message="full"
        )
        self.receive(encode_command(pb.BaseCommand(type=pb.BaseCommand.ERROR, error=error)))

    def lose_connection(self) -> None:
        self.connections[-1][0].connection_lost(None)

    @property
    def requests(self) -> list[int]:
        return self.connections[-1][1].requests

    @property
    def outcomes(self) -> list[Outcome | None]:
        return [record.outcome for record in self.client.records]


async def test_each_listing_is_asked_for_when_it_is_due_though_none_is_answered() -> None:
    # Given
    harness = Harness().begun()
    assert harness.requests == [1]
    # When
    harness.clock.advance(0.9)
    assert harness.requests == [1]
    harness.clock.advance(0.1)
    # Then
    assert harness.requests == [1, 2]
    harness.clock.advance(5)
    assert harness.requests == [1, 2, 3]
    assert [record.intended_start_seconds for record in harness.client.records] == [0, 1, 2]


async def test_an_answer_settles_its_own_request_only() -> None:
    # Given two that are under way
    harness = Harness().begun()
    harness.clock.advance(1)
    # When
    harness.clock.advance(0.5)
    harness.answer(2)
    # Then
    assert harness.outcomes == [None, Outcome.ANSWERED]
    second = harness.client.records[1]
    assert (second.intended_start_seconds, second.finished_seconds) == (1, 1.5)
    assert second.answer.verdict().topics == 300
    assert second.bytes == len(BODY)


async def test_a_refusal_settles_its_own_request_only() -> None:
    harness = Harness().begun()
    harness.clock.advance(1)
    harness.refuse(1)
    assert harness.outcomes == [Outcome.REFUSED, None]
    assert harness.client.records[0].reason == "TooManyRequests: full"


async def test_a_refusal_that_names_no_request_settles_all_that_were_sent() -> None:
    harness = Harness().begun()
    harness.clock.advance(1)
    harness.refuse(2**64 - 1)
    assert harness.outcomes == [Outcome.REFUSED, Outcome.REFUSED]


async def test_latency_counts_from_when_a_listing_was_due_not_from_when_it_was_sent() -> None:
    # Given a generator that comes to it 0.4 s late
    harness = Harness()
    harness.connect()
    harness.context.time.t0 -= 0.4
    # When
    harness.client.begin()
    harness.clock.advance(0)
    harness.answer(1)
    # Then
    (record,) = harness.client.records
    assert record.intended_start_seconds == 0
    assert record.started_seconds == pytest.approx(0.4)
    assert record.finished_seconds == pytest.approx(0.4)
    assert harness.client.start_error_seconds == pytest.approx(0.4)


async def test_who_is_not_answered_in_time_goes_on_with_the_same_connection() -> None:
    # Given
    harness = Harness(timeout_seconds=1.5).begun()
    # When
    harness.clock.advance(1.5)
    # Then
    assert harness.outcomes == [Outcome.TIMEOUT, None]
    assert harness.client.records[0].finished_seconds == 1.5
    harness.answer(1)
    assert harness.outcomes == [Outcome.TIMEOUT, None]
    harness.answer(2)
    assert harness.outcomes == [Outcome.TIMEOUT, Outcome.ANSWERED]


async def test_patience_counts_from_when_a_listing_was_due_too() -> None:
    # Given a generator that comes to it 0.4 s late
    harness = Harness(timeout_seconds=0.5, duration_seconds=0.9)
    harness.connect()
    harness.context.time.t0 -= 0.4
    harness.client.begin()
    # When
    harness.clock.advance(0.125)
    # Then
    assert harness.outcomes == [Outcome.TIMEOUT]


async def test_a_lost_connection_ends_what_was_sent_is_counted_and_made_again() -> None:
    # Given
    harness = Harness().begun()
    # When
    harness.clock.advance(0.5)
    harness.lose_connection()
    # Then
    assert harness.outcomes == [Outcome.DISCONNECTED]
    assert harness.client.records[0].reason == "closed by the server"
    assert (harness.client.connections_lost, harness.reconnects) == (1, 1)


async def test_what_falls_due_without_a_connection_is_sent_when_it_stands_again() -> None:
    # Given
    harness = Harness().begun()
    harness.answer(1)
    harness.lose_connection()
    # When
    harness.clock.advance(1.25)
    harness.connect()
    # Then the wait for the connection is part of its latency
    assert harness.requests == [2]
    harness.answer(2)
    second = harness.client.records[1]
    assert (second.intended_start_seconds, second.started_seconds) == (1, 1.25)
    assert harness.reconnects == 1


async def test_an_answer_before_the_handshake_settles_nothing() -> None:
    # Given a listing that waits for the connection
    harness = Harness().begun()
    harness.answer(1)
    harness.lose_connection()
    harness.clock.advance(1)
    # When the server answers it before it was asked
    connection, transport = ScheduledConnection(harness.client), Transport()
    harness.connections.append((connection, transport))
    connection.connection_made(transport)
    harness.answer(2)
    # Then
    assert harness.outcomes == [Outcome.ANSWERED, None]
    connection.handshake.cancel()


async def test_a_server_that_cannot_be_reached_is_tried_again_when_the_next_is_due() -> None:
    # Given
    harness = Harness().begun()
    harness.answer(1)
    harness.lose_connection()
    harness.clock.advance(1)
    # When
    harness.client.unreachable("Connection refused")
    # Then
    assert harness.outcomes == [Outcome.ANSWERED, Outcome.UNREACHABLE]
    assert harness.reconnects == 1
    harness.clock.advance(1)
    assert harness.reconnects == 2


async def test_it_is_done_once_when_the_last_listing_has_ended() -> None:
    # Given
    harness = Harness().begun()
    harness.clock.advance(5)
    harness.answer(3)
    harness.answer(1)
    assert harness.finished == 0
    # When
    harness.answer(2)
    # Then
    assert harness.finished == 1
    harness.lose_connection()
    assert (harness.finished, harness.reconnects) == (1, 0)


async def test_leaving_is_no_lost_connection() -> None:
    harness = Harness().begun()
    harness.client.close()
    harness.lose_connection()
    assert harness.connections[-1][1].aborted
    assert (harness.client.connections_lost, harness.reconnects) == (0, 0)


async def test_it_reads_at_its_rate() -> None:
    # Given
    harness = Harness(read_rate_bytes_per_second=10_000, duration_seconds=0.5).begun()
    frame = listing_frame(1, BODY)
    # When
    taken, seconds = 0, 0.0
    while taken < len(frame):
        taken += harness.receive(frame[taken:])
        harness.clock.advance(0.01)
        seconds += 0.01
    # Then
    assert seconds == pytest.approx(len(frame) / 10_000, rel=0.05)
    assert harness.outcomes == [Outcome.ANSWERED]


async def test_a_client_that_is_stopped_waits_for_its_answers_and_asks_for_nothing_more() -> None:
    # Given a request under way
    harness = Harness().begun()
    # When
    harness.client.stop()
    harness.clock.advance(5.0)
    still = harness.finished
    harness.answer(1)
    # Then
    assert (still, harness.finished) == (0, 1)
    assert [each.outcome for each in harness.client.records] == ["answered"]
    assert harness.counters.ended == {"list.answered": 1}


async def test_how_late_each_request_was_asked_for_is_kept() -> None:
    harness = Harness().begun()
    harness.clock.advance(1.5, late_seconds=0.25)
    assert list(harness.context.lags) == [0.0, 0.25]
