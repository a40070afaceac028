from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.clients.connection import ConnectFailedError
from loadgen.clients.context import ClientContext, RunTime
from loadgen.clients.records import Outcome, RequestCounters
from loadgen.scenario import ClientPlan, NamespaceExpectation
from loadgen.scenarios.storm.client import StormClient
from loadgen.scenarios.storm.scenario import StormScenario
from proto.frames import encode_command
from proto.parsing.parser import parse_command
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.stand_in_broker import (
    StandInBroker,
    listing_body,
    listing_frame,
    topic_names,
)

NAMESPACE = NamespaceExpectation(name="load/ns")
NAMES = topic_names("load/ns", 300, 100)
CONNECTED = encode_command(
    pb.BaseCommand(
        type=pb.BaseCommand.CONNECTED,
        connected=pb.CommandConnected(server_version="s", protocol_version=20),
    )
)
PING = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))


@dataclass
class RecordingTransport:
    """Keeps what was written and whether reading is paused."""

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


class Harness:
    """One client with a transport and a clock that a test holds in its hands."""

    def __init__(self, **changes) -> None:
        scenario = StormScenario(
            **{
                "service_url": "pulsar://127.0.0.1:1",
                "namespaces": (NAMESPACE,),
                "clients": 1,
                "read_rate_bytes_per_second": 0,
                **changes,
            }
        )
        self.clock = ManualClock()
        self.counters = RequestCounters()
        self.finished = 0
        context = ClientContext(
            scenario,
            self.counters,
            self._finish,
            RunTime(self.clock.now, self.clock.now()),
            self.clock,
        )
        self.transport = RecordingTransport()
        self.client = StormClient(ClientPlan(0, NAMESPACE, 0.0, None), context)
        self.client.connection_made(self.transport)

    def _finish(self) -> None:
        self.finished += 1

    def receive(self, data: bytes) -> int:
        """Give the client what it is ready to take; return how many bytes that was."""
        taken = 0
        while taken < len(data) and self.transport.reading and not self.transport.aborted:
            room = self.client.get_buffer(-1)
            chunk = data[taken : taken + len(room)]
            room[: len(chunk)] = chunk
            self.client.buffer_updated(len(chunk))
            taken += len(chunk)
        return taken

    def connected(self) -> Harness:
        self.receive(CONNECTED)
        return self

    def begun(self) -> Harness:
        self.connected()
        self.client.begin()
        return self

    @property
    def only(self):
        (record,) = self.client.records
        return record


async def test_connects_first_and_asks_once_when_it_begins() -> None:
    # Given
    harness = Harness().connected()
    assert [each.type for each in harness.transport.written] == [pb.BaseCommand.CONNECT]
    assert harness.client.handshake.done()
    # When
    harness.client.begin()
    # Then
    request = harness.transport.written[1].getTopicsOfNamespace
    assert (request.request_id, request.namespace) == (1, "load/ns")
    assert not request.HasField("topics_pattern")
    assert harness.counters.started == 1


async def test_an_answer_is_timed_from_intended_start_to_last_byte() -> None:
    # Given
    harness = Harness().begun()
    frame = listing_frame(1, listing_body(NAMES))
    # When
    harness.clock.advance(2)
    harness.receive(frame[:5])
    harness.clock.advance(1)
    harness.receive(frame[5:])
    # Then
    record = harness.only
    assert record.outcome is Outcome.ANSWERED
    assert (record.started_seconds, record.first_byte_seconds) == (0, 2)
    assert (record.finished_seconds, record.bytes) == (3, len(frame))
    assert record.answer.verdict().topics == 300
    assert harness.finished == 1


async def test_reads_at_the_read_rate_and_never_more_than_the_budget_at_once() -> None:
    # Given
    harness = Harness(read_rate_bytes_per_second=10_000).begun()
    frame = listing_frame(1, listing_body(NAMES))
    # When
    taken, seconds, largest = 0, 0.0, 0
    while taken < len(frame):
        now = harness.receive(frame[taken:])
        largest, taken = max(largest, now), taken + now
        harness.clock.advance(0.01)
        seconds += 0.01
    # Then
    assert seconds == pytest.approx(len(frame) / 10_000, rel=0.05)
    assert largest <= 2_000
    assert harness.only.outcome is Outcome.ANSWERED


async def test_a_ping_is_answered_and_is_not_the_answers_first_byte() -> None:
    # Given
    harness = Harness().begun()
    # When
    harness.receive(PING)
    harness.clock.advance(1)
    harness.receive(listing_frame(1, listing_body(NAMES)))
    # Then
    assert harness.transport.written[-1].type == pb.BaseCommand.PONG
    assert harness.only.first_byte_seconds == 1


async def test_a_refusal_is_not_tried_again() -> None:
    # Given
    harness = Harness().begun()
    broker = StandInBroker(refuse={"load/ns": (pb.ServerError.TooManyRequests, "limit 17")})
    # When
    harness.receive(broker.answer(harness.transport.written[1].getTopicsOfNamespace))
    # Then
    assert harness.only.outcome is Outcome.REFUSED
    assert harness.only.reason == "TooManyRequests: limit <n>"
    assert len(harness.transport.written) == 2


async def test_an_answer_to_another_request_is_ignored() -> None:
    harness = Harness().begun()
    harness.receive(listing_frame(2, listing_body(NAMES)))
    assert harness.only.outcome is None
    harness.receive(listing_frame(1, listing_body(NAMES)))
    assert harness.only.outcome is Outcome.ANSWERED


async def test_who_waits_too_long_leaves() -> None:
    # Given
    harness = Harness(timeout_seconds=25, requests_per_client=2).begun()
    # When
    harness.clock.advance(25)
    harness.client.connection_lost(None)
    # Then
    first, second = harness.client.records
    assert (first.outcome, first.finished_seconds) == (Outcome.TIMEOUT, 25)
    assert second.outcome is Outcome.DISCONNECTED
    assert second.reason == "not sent: no complete answer within 25 s"
    assert harness.transport.aborted
    assert harness.finished == 1


async def test_who_was_answered_does_not_leave_later() -> None:
    harness = Harness(timeout_seconds=25).begun()
    harness.receive(listing_frame(1, listing_body(NAMES)))
    harness.clock.advance(100)
    assert harness.only.outcome is Outcome.ANSWERED
    assert not harness.transport.aborted


async def test_a_connection_that_closes_ends_the_request() -> None:
    harness = Harness().begun()
    harness.client.connection_lost(None)
    assert harness.only.outcome is Outcome.DISCONNECTED
    assert harness.only.reason == "closed by the server"
    assert harness.finished == 1


async def test_a_connection_that_closed_before_the_start_gives_a_row_too() -> None:
    harness = Harness().connected()
    harness.client.connection_lost(None)
    harness.client.begin()
    assert harness.only.outcome is Outcome.DISCONNECTED
    assert harness.only.reason == "not sent: closed by the server"
    assert harness.only.started_seconds is None
    assert harness.finished == 1


async def test_rubbish_ends_the_connection() -> None:
    harness = Harness().begun()
    harness.receive(b"\x00\x00\x00\x07\x00\x00\x00\x03\xff\xff\xff")
    assert harness.only.outcome is Outcome.DISCONNECTED
    assert "protocol error" in harness.only.reason
    assert harness.transport.aborted


async def test_the_next_request_is_sent_when_the_last_is_settled() -> None:
    # Given
    harness = Harness(requests_per_client=2).begun()
    # When
    harness.clock.advance(1)
    harness.receive(listing_frame(1, listing_body(NAMES)))
    harness.clock.advance(1)
    harness.receive(listing_frame(2, listing_body(NAMES)))
    # Then
    first, second = harness.client.records
    assert (first.finished_seconds, second.intended_start_seconds) == (1, 1)
    assert (second.outcome, second.finished_seconds) == (Outcome.ANSWERED, 2)
    assert harness.finished == 1


@pytest.mark.parametrize("requests", [1, 3])
async def test_a_client_without_connection_has_a_row_for_each_request(requests: int) -> None:
    harness = Harness(requests_per_client=requests)
    harness.client.unreachable("Connection refused", -1.5)
    assert [each.outcome for each in harness.client.records] == [Outcome.UNREACHABLE] * requests
    assert harness.client.records[0].finished_seconds == -1.5
    assert harness.counters.unreachable == requests


async def test_a_refused_handshake_says_why() -> None:
    # Given
    harness = Harness()
    error = pb.CommandError(
        request_id=2**64 - 1, error=pb.ServerError.AuthenticationError, message="no"
    )
    # When
    harness.receive(encode_command(pb.BaseCommand(type=pb.BaseCommand.ERROR, error=error)))
    # Then
    with pytest.raises(ConnectFailedError, match="AuthenticationError: no"):
        await harness.client.handshake


async def test_a_listing_before_the_handshake_is_not_awaited() -> None:
    harness = Harness()
    harness.receive(listing_frame(1, listing_body(NAMES)))
    assert harness.client.records == []
    harness.client.handshake.cancel()
    await asyncio.sleep(0)
