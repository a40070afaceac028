"""Every command in every state of a broker's connection: served, refused or closed, no more."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from broker.cnx import TRANSITIONS, BrokerParts, ServerCnx, ServerCnxState
from broker.listing.lister import TopicLister
from broker.service import BrokerService
from broker.stores.memory import MemoryStore
from broker.topics.rules import TopicRules
from broker.topics.service import TopicService
from tests.support.clocks.settle import settle
from tests.support.peers.raw_peer import connect_command, frame, ping
from tests.support.processes.cluster import broker_config, no_errors_logged
from tests.support.processes.commands import TYPES, Wire, complete_command, outcome, type_name

START, CONNECTED, FAILED = ServerCnxState.START, ServerCnxState.CONNECTED, ServerCnxState.FAILED
Type = pb.BaseCommand
CLOSED = "closed"
LEGAL = {
    START: {Type.CONNECT: "CONNECTED", Type.PING: "PONG", Type.PONG: ""},
    CONNECTED: {
        Type.PING: "PONG",
        Type.PONG: "",
        Type.LOOKUP: "LOOKUP_RESPONSE",
        Type.PARTITIONED_METADATA: "PARTITIONED_METADATA_RESPONSE",
        Type.GET_TOPICS_OF_NAMESPACE: "ERROR",
        Type.WATCH_TOPIC_LIST: "ERROR",
        Type.WATCH_TOPIC_LIST_CLOSE: "SUCCESS",
    },
    FAILED: {},
}
"""What is legal, and what comes of it (``x`` is no namespace: hence the ERROR)."""
REFUSED = {
    Type.PRODUCER,
    Type.SUBSCRIBE,
    Type.UNSUBSCRIBE,
    Type.SEEK,
    Type.CLOSE_PRODUCER,
    Type.CLOSE_CONSUMER,
    Type.GET_LAST_MESSAGE_ID,
    Type.CONSUMER_STATS,
    Type.GET_SCHEMA,
    Type.GET_OR_CREATE_SCHEMA,
    Type.NEW_TXN,
    Type.TC_CLIENT_CONNECT_REQUEST,
}
"""Requests that a connected client gets an ERROR for, in this version."""


def parts(**keys: str) -> BrokerParts:
    service = BrokerService(broker_config(keys))
    service.store = MemoryStore()
    service.lister = TopicLister(service.store)
    service.topics = TopicService(service.store, lambda: TopicRules.of(service.config))
    return service._parts()


def wire(state: ServerCnxState, of: BrokerParts | None = None) -> Wire:
    found = Wire(ServerCnx(of or parts()))
    found.cnx.state = state
    return found


def test_the_table_holds_just_the_legal_commands() -> None:
    assert {state: set(row) for state, row in TRANSITIONS.items()} == {
        state: set(row) for state, row in LEGAL.items()
    }


@pytest.mark.parametrize("state", list(ServerCnxState))
async def test_each_command_in_each_state(state: ServerCnxState) -> None:
    # Given
    shared, found = parts(), {}
    with no_errors_logged():
        for kind in TYPES:
            # When
            found[kind] = await outcome(ServerCnx(shared), state, complete_command(kind))
    # Then
    refused = dict.fromkeys(REFUSED, "ERROR") if state is CONNECTED else {}
    assert found == {**dict.fromkeys(TYPES, CLOSED), **refused, **LEGAL[state]}


@pytest.mark.parametrize("kind", sorted(REFUSED), ids=type_name)
async def test_a_request_of_a_later_version_is_refused_by_name(kind: int) -> None:
    # Given
    client = wire(CONNECTED)
    # When
    client.say(complete_command(kind))
    # Then
    (answer,) = client.answers()
    assert answer.error.error == pb.NotAllowedError
    assert answer.error.request_id == 1
    assert answer.error.message.startswith(f"{type_name(kind)} is not served")


@pytest.mark.parametrize("state", list(ServerCnxState))
async def test_a_command_without_a_body_closes(
    state: ServerCnxState,
) -> None:
    # Given
    shared, found = parts(), {}
    with no_errors_logged():
        for kind in TYPES:
            # When
            found[kind] = await outcome(ServerCnx(shared), state, pb.BaseCommand(type=kind))
    # Then
    assert found == dict.fromkeys(TYPES, CLOSED)


@pytest.mark.parametrize("kind", sorted({*LEGAL[CONNECTED], *REFUSED}), ids=type_name)
async def test_another_commands_body_closes(kind: int) -> None:
    # Given
    shared, found = parts(), set()
    with no_errors_logged():
        for body in TYPES:
            if body != kind:
                # When
                client = wire(CONNECTED, shared)
                client.say(complete_command(kind, body))
                found.add(client.closed)
    # Then
    assert found == {True}


async def test_one_watch_has_a_turn_because_its_pattern_is_compiled_in_it() -> None:
    # Given
    client = wire(CONNECTED)
    watch = complete_command(Type.WATCH_TOPIC_LIST)
    watch.watchTopicList.namespace, watch.watchTopicList.topics_pattern = "a/b", "("
    # When
    client.transport.peer_sends(frame(watch) * 3)
    # Then
    assert len(client.answers()) == 1
    await settle()
    assert len(client.answers()) == 2


@pytest.mark.parametrize(("offered", "spoken"), [(0, 0), (9, 9), (20, 20), (21, 21), (99, 21)])
async def test_the_lower_protocol_version_is_spoken(offered: int, spoken: int) -> None:
    # Given
    client = wire(START)
    # When
    client.say(connect_command(protocol_version=offered))
    # Then
    (answer,) = client.answers()
    assert answer.connected.protocol_version == spoken
    assert client.cnx.client_version == "raw-peer"


@pytest.mark.parametrize(
    ("keys", "announced"),
    [
        ({}, True),
        ({"enableBrokerTopicListWatcher": "false"}, False),
        ({"floodgateProfile": "pulsar"}, True),
        ({"floodgateProfile": "pulsar", "enableBrokerTopicListWatcher": "false"}, False),
    ],
)
async def test_connected_says_what_this_broker_can(keys: dict[str, str], announced: bool) -> None:
    # Given
    client = wire(START, parts(maxMessageSize="1234", **keys))
    # When
    client.say(connect_command())
    # Then
    (answer,) = client.answers()
    flags = answer.connected.feature_flags
    assert answer.connected.max_message_size == 1_234
    assert flags.supports_topic_watchers is announced
    assert flags.supports_topic_watcher_reconcile is announced
    assert flags.supports_get_partitioned_metadata_without_auto_creation
    assert flags.supports_repl_dedup_by_lid_and_eid


async def test_a_connection_is_counted_from_its_beginning_to_its_end() -> None:
    # Given
    client = wire(START)
    counters = client.cnx._parts.counters
    assert (counters.active, counters.create_success) == (1, 0)
    client.say(connect_command())
    client.say(ping())
    assert counters.create_success == 1
    # When
    client.transport.breaks()
    # Then
    assert client.cnx.state is FAILED
    assert client.cnx not in client.cnx._parts.connections
    assert (counters.active, counters.created_total, counters.closed_total) == (0, 1, 1)
