"""A connection of a family's client writes what is asked, and tells what comes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.clients.wires import BrokerAddress, ListQuestion
from loadgen.scenario import ClientPlan
from loadgen.scenarios.discovery.family_connection import FamilyConnection
from loadgen.scenarios.discovery.frames import NOBODY_ASKED
from loadgen.scenarios.discovery.scenario import Group, Reader
from proto.commands import error_command, lookup_failed
from proto.frames import encode_command
from proto.parsing.parser import parse_command
from proto.topic_hash import topics_hash
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.stand_in_broker import listing_body, listing_frame, topic_names
from tests.unit.loadgen.scenarios.discovery.clients import NAMESPACE, context_of

Type = pb.BaseCommand
NAMES = topic_names(NAMESPACE.name, 20)


@dataclass
class Transport:
    """Keeps what was written, and whether it is read."""

    written: list[pb.BaseCommand] = field(default_factory=list)
    reading: bool = True
    closed: bool = False

    def write(self, data):
        self.written.append(parse_command(data[8:]))

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def is_closing(self):
        return self.closed

    def abort(self):
        self.closed = True


class Events:
    """Keeps what was told."""

    def __init__(self):
        self.told = []

    def __getattr__(self, name):
        return lambda *args, **named: self.told.append((name, *args, *named.items()))


class Harness:
    """A connection, its transport, and what it told."""

    def __init__(self, reader=None, broker=None, flags=None):
        self.clock = ManualClock()
        context = context_of(self.clock, Group(name="g", clients=1))
        self.events, self.transport = Events(), Transport()
        plan = ClientPlan(0, NAMESPACE, 0.0, None)
        self.connection = FamilyConnection(plan, reader or Reader(), context, self.events, broker)
        self.connection.connection_made(self.transport)
        connected = pb.CommandConnected(server_version="s", feature_flags=flags)
        self.receive(Type(type=Type.CONNECTED, connected=connected))
        self.connection.hand_over()

    def receive(self, command):
        self.feed(encode_command(command))

    def feed(self, data):
        while data and self.transport.reading:
            room = self.connection.get_buffer(-1)
            size = min(len(room), len(data))
            room[:size] = data[:size]
            self.connection.buffer_updated(size)
            data = data[size:]
        return data

    def told(self, name):
        return [each[1:] for each in self.events.told if each[0] == name]


@pytest.fixture(autouse=True)
def _loop(monkeypatch):
    """Let futures be made without a loop that runs."""
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    yield
    loop.close()


def test_it_shakes_hands_as_a_client_that_knows_watches_and_tells_what_the_server_offers():
    harness = Harness(flags=pb.FeatureFlags(supports_topic_watchers=True))
    (connect,) = harness.transport.written
    assert connect.connect.feature_flags.supports_topic_watchers
    assert not connect.connect.HasField("proxy_to_broker_url")
    ((wire, *flags),) = harness.told("connected")
    assert wire is harness.connection
    assert flags == [("watches", True), ("reconciles", False)]


def test_a_tunnel_names_its_broker():
    harness = Harness(broker=BrokerAddress("pulsar://broker:6650", True))
    assert harness.transport.written[0].connect.proxy_to_broker_url == "broker:6650"


def test_a_list_is_asked_for_with_all_that_the_question_has():
    harness = Harness()
    question = ListQuestion(NAMESPACE.name, "t-.*", "deadbeef", {"team": "red"})
    # When
    harness.connection.list_topics(7, question)
    # Then
    asked = harness.transport.written[-1].getTopicsOfNamespace
    assert (asked.request_id, asked.namespace) == (7, NAMESPACE.name)
    assert (asked.topics_pattern, asked.topics_hash) == ("t-.*", "deadbeef")
    assert {each.key: each.value for each in asked.properties} == {"team": "red"}


def test_a_list_is_told_when_it_begins_and_when_it_is_whole():
    harness = Harness()
    harness.connection.list_topics(7, ListQuestion(NAMESPACE.name, names_wanted=2))
    data = listing_frame(7, listing_body(NAMES))
    # When
    harness.feed(data[:100])
    early = [each[0] for each in harness.events.told]
    harness.feed(data[100:])
    # Then
    assert early == ["connected", "first_byte"]
    ((number, answer),) = harness.told("listed")
    assert (number, answer.names, answer.changed) == (7, NAMES[:2], True)
    assert answer.topics_hash == topics_hash(NAMES)
    assert answer.size_bytes == len(listing_body(NAMES))
    assert answer.body.verdict().problem is None


def test_a_list_that_nobody_asked_for_is_not_told():
    harness = Harness()
    harness.feed(listing_frame(9, listing_body(NAMES)))
    assert harness.told("listed") == []


ANSWERS = {
    "looked up": (
        Type(
            type=Type.LOOKUP_RESPONSE,
            lookupTopicResponse=pb.CommandLookupTopicResponse(
                request_id=3,
                response=pb.CommandLookupTopicResponse.Connect,
                brokerServiceUrl="pulsar://b:1",
                proxy_through_service_url=True,
            ),
        ),
        ("looked_up", 3, BrokerAddress("pulsar://b:1", True)),
    ),
    "not looked up": (
        lookup_failed(3, pb.TooManyRequests, "too many of 17"),
        ("refused", 3, pb.TooManyRequests, "TooManyRequests: too many of <n>"),
    ),
    "watching": (
        Type(
            type=Type.WATCH_TOPIC_LIST_SUCCESS,
            watchTopicListSuccess=pb.CommandWatchTopicListSuccess(
                request_id=3, watcher_id=1, topics_hash="h", topic=["a", "b"]
            ),
        ),
        ("watch_opened", 3, "h", 2),
    ),
    "changed": (
        Type(
            type=Type.WATCH_TOPIC_UPDATE,
            watchTopicUpdate=pb.CommandWatchTopicUpdate(
                watcher_id=1, new_topics=["a"], deleted_topics=["b"], topics_hash="h"
            ),
        ),
        ("watch_updated", 1, "h", 2),
    ),
    "subscribed": (
        Type(type=Type.SUCCESS, success=pb.CommandSuccess(request_id=3)),
        ("subscribed", 3),
    ),
    "closed": (
        Type(
            type=Type.CLOSE_CONSUMER,
            close_consumer=pb.CommandCloseConsumer(consumer_id=4, request_id=1),
        ),
        ("consumer_closed", 4),
    ),
    "refused": (
        error_command(3, pb.ServiceNotReady, "not yet"),
        ("refused", 3, pb.ServiceNotReady, "ServiceNotReady: not yet"),
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_other_answers_are_told(name: str):
    harness = Harness()
    command, told = ANSWERS[name]
    # When
    harness.receive(command)
    # Then
    assert harness.events.told[1:] == [told]


def test_requests_are_written_as_the_protocol_has_them():
    harness = Harness()
    connection = harness.connection
    # When
    connection.look_up(1, "t")
    connection.open_watch(2, 1, NAMESPACE.name, "p", "h")
    connection.subscribe(3, 0, "t", "s")
    connection.close_watch(1)
    # Then
    lookup, watch, subscribe, close = harness.transport.written[1:]
    assert (lookup.lookupTopic.request_id, lookup.lookupTopic.topic) == (1, "t")
    asked = watch.watchTopicList
    assert (asked.request_id, asked.topics_pattern, asked.topics_hash) == (2, "p", "h")
    assert subscribe.subscribe.subType == pb.CommandSubscribe.Shared
    assert not subscribe.subscribe.force_topic_creation
    assert close.watchTopicListClose.request_id == NOBODY_ASKED


def test_a_reader_with_a_speed_leaves_the_rest_unread():
    harness = Harness(Reader(rate_bytes_per_second=1000))
    harness.connection.list_topics(1, ListQuestion(NAMESPACE.name))
    # When
    left = harness.feed(listing_frame(1, listing_body(NAMES)))
    # Then
    assert left
    assert not harness.transport.reading


def test_a_reader_that_stalls_reads_nothing_until_it_goes_on():
    harness = Harness(Reader(rate_bytes_per_second=1000))
    harness.connection.list_topics(1, ListQuestion(NAMESPACE.name))
    data = harness.feed(listing_frame(1, listing_body(NAMES)))
    # When
    harness.connection.stall()
    harness.clock.advance(60)  # its budget would let it read
    stalled = not harness.transport.reading
    harness.connection.go_on()
    # Then
    assert stalled
    assert len(harness.feed(data)) < len(data)


def test_a_lost_connection_is_told_and_a_closed_one_is_not():
    lost, closed = Harness(), Harness()
    # When
    closed.connection.close()
    for each in (lost, closed):
        each.connection.connection_lost(None)
    # Then
    assert lost.told("disconnected") == [("closed by the server",)]
    assert closed.told("disconnected") == []
