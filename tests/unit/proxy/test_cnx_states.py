"""Every command in every state of a proxy's connection: served or closed, and nothing else."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from proxy.cnx import TRANSITIONS, ProxyConnection, ProxyConnectionState, ProxyParts
from proxy.service import ProxyService
from tests.support.clocks.settle import settle
from tests.support.peers.byte_broker import ByteBroker
from tests.support.peers.raw_peer import connect_command, ping
from tests.support.processes.cluster import no_errors_logged, proxy_config
from tests.support.processes.commands import TYPES, Wire, complete_command, outcome, type_name

State = ProxyConnectionState
Type = pb.BaseCommand
CLOSED = "closed"
LEGAL = {
    State.INIT: {Type.CONNECT: "CONNECTED", Type.PING: "PONG", Type.PONG: ""},
    State.PROXY_LOOKUP_REQUESTS: {
        Type.PING: "PONG",
        Type.PONG: "",
        Type.LOOKUP: "",
        Type.PARTITIONED_METADATA: "",
        Type.GET_TOPICS_OF_NAMESPACE: "ERROR",
    },
    State.PROXY_CONNECTING_TO_BROKER: {},
    State.PROXY_CONNECTION_TO_BROKER: {},
    State.CLOSED: {},
}
"""What is legal, and what comes of it: lookups wait for the broker, ``x`` is no namespace."""
SERVING = [State.INIT, State.PROXY_LOOKUP_REQUESTS]


def parts(**keys: str) -> ProxyParts:
    return ProxyService(proxy_config(keys))._parts()


def wire(state: ProxyConnectionState, of: ProxyParts | None = None) -> Wire:
    found = Wire(ProxyConnection(of or parts()))
    found.cnx.state = state
    return found


def connect(command: pb.BaseCommand) -> pb.BaseCommand:
    """Give a CONNECT a protocol version that the proxy serves."""
    if command.HasField("connect"):
        command.connect.protocol_version = 21
    return command


def test_the_table_holds_just_the_legal_commands() -> None:
    assert {state: set(row) for state, row in TRANSITIONS.items()} == {
        state: set(row) for state, row in LEGAL.items()
    }


@pytest.mark.parametrize("state", list(ProxyConnectionState))
async def test_each_command_in_each_state(state: ProxyConnectionState) -> None:
    # Given
    async with ByteBroker(None) as silent:
        shared, found = parts(brokerServiceURL=silent.url), {}
        with no_errors_logged():
            for kind in TYPES:
                command = connect(complete_command(kind))
                # When
                found[kind] = await outcome(ProxyConnection(shared), state, command)
    # Then
    assert found == {**dict.fromkeys(TYPES, CLOSED), **LEGAL[state]}


@pytest.mark.parametrize("state", list(ProxyConnectionState))
async def test_a_command_without_a_body_closes(
    state: ProxyConnectionState,
) -> None:
    # Given
    shared, found = parts(), {}
    with no_errors_logged():
        for kind in TYPES:
            # When
            found[kind] = await outcome(ProxyConnection(shared), state, pb.BaseCommand(type=kind))
    # Then
    assert found == dict.fromkeys(TYPES, CLOSED)


@pytest.mark.parametrize("kind", sorted(LEGAL[State.PROXY_LOOKUP_REQUESTS]), ids=type_name)
async def test_another_commands_body_closes(kind: int) -> None:
    # Given
    shared, found = parts(), set()
    with no_errors_logged():
        for body in TYPES:
            if body != kind:
                # When
                client = wire(State.PROXY_LOOKUP_REQUESTS, shared)
                client.say(complete_command(kind, body))
                found.add(client.closed)
    # Then
    assert found == {True}


@pytest.mark.parametrize(("offered", "spoken"), [(10, 10), (20, 20), (21, 21), (99, 21)])
async def test_connected_on_a_lookup_connection_says_what_the_recording_says(
    offered: int, spoken: int
) -> None:
    # Given
    client = wire(State.INIT)
    # When
    client.say(connect_command(protocol_version=offered))
    # Then
    (answer,) = client.answers()
    flags = answer.connected.feature_flags
    assert answer.connected.protocol_version == spoken
    assert not answer.connected.HasField("max_message_size")
    assert not flags.supports_topic_watchers
    assert flags.supports_get_partitioned_metadata_without_auto_creation
    assert client.cnx.state is State.PROXY_LOOKUP_REQUESTS


@pytest.mark.parametrize("offered", [0, 9])
async def test_a_protocol_version_below_10_closes(offered: int) -> None:
    # Given
    client = wire(State.INIT)
    # When
    client.say(connect_command(protocol_version=offered))
    # Then
    assert client.closed
    assert client.answers() == []


async def test_a_connection_is_counted_from_its_beginning_to_its_end() -> None:
    # Given
    client = wire(State.INIT)
    known = client.cnx._parts
    client.say(connect_command())
    client.say(ping())
    counters = known.connection_counters
    before = (counters.active, counters.create_success, known.counters.binary_ops)
    # When
    client.transport.breaks()
    await settle()
    # Then
    assert before == (1, 1, 2)
    assert client.cnx.state is State.CLOSED
    assert (counters.active, counters.closed_total) == (0, 1)
    assert known.connections == set()
    assert known.per_ip == {}


async def test_a_pipe_that_fails_by_our_own_fault_is_answered_and_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Given
    client = wire(State.INIT)

    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    client.cnx._parts.direct_handler.open = fail
    # When
    client.say(connect_command("127.0.0.1:6650"))
    await settle()
    # Then
    (answer,) = client.answers()
    assert answer.error.error == pb.UnknownError
    assert client.closed
    assert len(caplog.records) == 1
