"""A client looks topics up in turn, and every response settles its own lookup."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.clients.context import ClientContext, RunTime
from loadgen.clients.records import RequestCounters
from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.clients.scheduled_client import ScheduledClient
from loadgen.errors import LoadgenError
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.lookups.connections import LookupConnection, TopicListing, frame_in_turn
from loadgen.scenarios.lookups.scenario import LookupsScenario
from proto.frames import encode_command
from proto.parsing.parser import parse_command
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.stand_in_broker import listing_body, listing_frame

if TYPE_CHECKING:
    from loadgen.clients.connection import ClientConnection

TOPICS = [f"persistent://load/ns/{name}" for name in "abc"]
CONNECTED = pb.BaseCommand(
    type=pb.BaseCommand.CONNECTED, connected=pb.CommandConnected(server_version="s")
)
Kind = pb.CommandLookupTopicResponse


class Transport:
    """Keeps the commands that were written."""

    def __init__(self) -> None:
        self.written: list[pb.BaseCommand] = []
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written.append(parse_command(data[8:]))

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    @property
    def looked_up(self) -> list[str]:
        lookups = [each for each in self.written if each.type == pb.BaseCommand.LOOKUP]
        return [each.lookupTopic.topic for each in lookups]


class Desk:
    """One client of two that looks up twice a second for two seconds, and a clock to turn."""

    def __init__(self) -> None:
        self.scenario = LookupsScenario(
            service_url="pulsar://127.0.0.1:1",
            namespaces=(NamespaceExpectation(name="load/ns"),),
            clients=2,
            lookups_per_second=2,
            lookup_seconds=2,
            timeout_seconds=5,
        )
        self.clock = ManualClock()
        time = RunTime(self.clock.now, self.clock.now())
        counters = RequestCounters()
        self.context = ClientContext(self.scenario, counters, lambda: None, time, self.clock)
        self.plan = next(scheduled_plans(self.scenario, 0, 1))
        self.transport = Transport()

    def looking_up(self) -> ScheduledClient:
        """A connected client that has begun."""
        due = due_moments(self.scenario, self.plan.client)
        frame = partial(frame_in_turn, TOPICS, self.plan.client, self.scenario.clients)
        client = ScheduledClient(self.plan, self.context, due, frame, lambda _: None)
        self.connection = self.connected(LookupConnection(client))
        client.connected(self.connection)
        client.begin()
        return client

    def connected(self, connection: ClientConnection) -> ClientConnection:
        connection.connection_made(self.transport)
        self.receive(connection, encode_command(CONNECTED))
        return connection

    def receive(self, connection: ClientConnection, data: bytes) -> None:
        connection.get_buffer(-1)[: len(data)] = data
        connection.buffer_updated(len(data))

    def respond(self, request_id: int, kind: int, **fields) -> None:
        response = Kind(request_id=request_id, response=kind, **fields)
        command = pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response)
        self.receive(self.connection, encode_command(command))


async def test_clients_take_the_topics_in_turn() -> None:
    # Given
    desk = Desk()
    # When
    desk.looking_up()
    desk.clock.advance(1.9)
    # Then the first of two clients takes every second one
    assert desk.transport.looked_up == [TOPICS[number] for number in (0, 2, 1, 0)]


async def test_a_response_settles_its_lookup_as_answered_or_refused() -> None:
    # Given
    desk = Desk()
    client = desk.looking_up()
    desk.clock.advance(1.4)
    # When
    desk.respond(2, Kind.Connect, brokerServiceUrl="pulsar://b:1")
    desk.respond(1, Kind.Failed, error=pb.TooManyRequests, message="no room for 7 lookups")
    desk.respond(3, Kind.Redirect, brokerServiceUrl="pulsar://other:1")
    # Then
    assert [each.outcome for each in client.records] == ["refused", "answered", "answered"]
    assert client.records[0].reason == "TooManyRequests: no room for <n> lookups"
    assert client.records[1].bytes > 0


async def test_latency_counts_from_when_a_lookup_was_due_and_its_wait_ends_then() -> None:
    # Given a server that answers nobody until both patience and the second lookup are over
    desk = Desk()
    client = desk.looking_up()
    desk.clock.advance(0)
    desk.clock.advance(5.4)
    # When
    desk.respond(1, Kind.Connect)
    desk.respond(2, Kind.Connect)
    # Then the late one is not answered a second time, and the other took all of its wait
    first, second = client.records[:2]
    assert (first.outcome, second.outcome) == ("timeout", "answered")
    assert second.finished_seconds - second.intended_start_seconds == pytest.approx(4.9)


async def topics_after(data: bytes) -> list[str]:
    desk = Desk()
    listing = desk.connected(TopicListing(desk.plan, desk.context))
    asked = asyncio.create_task(listing.topics())
    await settle()
    desk.receive(listing, data)
    return await asked


async def test_topics_are_listed_before_they_are_looked_up() -> None:
    assert await topics_after(listing_frame(1, listing_body(TOPICS))) == TOPICS


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (listing_frame(1, listing_body([])), "load/ns lists no topics to look up"),
        (
            encode_command(
                pb.BaseCommand(
                    type=pb.BaseCommand.ERROR,
                    error=pb.CommandError(request_id=1, error=pb.MetadataError, message="gone"),
                )
            ),
            "load/ns cannot be listed: MetadataError: gone",
        ),
        (b"\0\0\0\1\0\0\0\0", "load/ns cannot be listed: protocol error"),
    ],
)
async def test_without_topics_there_is_nothing_to_look_up(data: bytes, sentence: str) -> None:
    with pytest.raises(LoadgenError, match=sentence):
        await topics_after(data)


async def test_a_server_that_lists_nothing_is_not_waited_for_without_end() -> None:
    # Given
    desk = Desk()
    listing = desk.connected(TopicListing(desk.plan, desk.context))
    asked = asyncio.create_task(listing.topics())
    await settle()
    # When
    desk.clock.advance(5.1)
    # Then
    with pytest.raises(LoadgenError, match="no complete answer in 5 s"):
        await asked
