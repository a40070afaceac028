"""Every command in every state of a proxy's connection is served, or closes the connection."""

import pytest

import proto.PulsarApi_pb2 as pb
from proxy.cnx import ProxyConnection, ProxyConnectionState, ProxyParts
from proxy.commands.table import COMMANDS
from proxy.service import ProxyService
from tests.support.peers.byte_broker import ByteBroker
from tests.support.processes.cluster import no_errors_logged, proxy_config
from tests.support.processes.commands import TYPES, Wire, complete_command, outcome, type_name

State = ProxyConnectionState
Type = pb.BaseCommand
CLOSED = "closed"
LEGAL = {
    State.INIT: {Type.CONNECT: "CONNECTED", Type.PING: "PONG", Type.PONG: ""},
    State.PROXY_LOOKUP_REQUESTS: {
        Type.AUTH_RESPONSE: CLOSED,
        Type.PING: "PONG",
        Type.PONG: "",
        Type.LOOKUP: "",
        Type.PARTITIONED_METADATA: "",
        Type.GET_SCHEMA: "",
        Type.GET_TOPICS_OF_NAMESPACE: "ERROR",
    },
    State.PROXY_CONNECTING_TO_BROKER: {},
    State.PROXY_CONNECTION_TO_BROKER: {},
    State.CLOSED: {},
}
"""Legal commands and outcomes: lookups wait for the broker, ``x`` is no namespace."""
SERVING = [State.INIT, State.PROXY_LOOKUP_REQUESTS]


def parts(**keys: str) -> ProxyParts:
    return ProxyService(proxy_config(keys))._parts()


def wire(state: ProxyConnectionState, of: ProxyParts | None = None) -> Wire:
    found = Wire(ProxyConnection(of or parts()))
    found.cnx.state = state
    return found


def connect(command: pb.BaseCommand) -> pb.BaseCommand:
    """Give a CONNECT a protocol version served by the proxy."""
    if command.HasField("connect"):
        command.connect.protocol_version = 21
    return command


def test_the_command_table_holds_exactly_the_legal_commands_of_each_state() -> None:
    assert {state: set(COMMANDS.legal_in(state)) for state in ProxyConnectionState} == {
        state: set(row) for state, row in LEGAL.items()
    }


@pytest.mark.parametrize("state", list(ProxyConnectionState))
async def test_each_command_is_served_or_closes_the_connection_according_to_the_state(
    state: ProxyConnectionState,
) -> None:
    async with ByteBroker(None) as silent:
        shared, found = parts(brokerServiceURL=silent.url), {}
        with no_errors_logged():
            for kind in TYPES:
                command = connect(complete_command(kind))
                found[kind] = await outcome(ProxyConnection(shared), state, command)
    assert found == {**dict.fromkeys(TYPES, CLOSED), **LEGAL[state]}


async def test_lookup_partition_and_schema_requests_are_counted_separately() -> None:
    async with ByteBroker(None) as silent:
        shared = parts(brokerServiceURL=silent.url)
        for kind in (Type.LOOKUP, Type.PARTITIONED_METADATA, Type.GET_SCHEMA):
            await outcome(
                ProxyConnection(shared), State.PROXY_LOOKUP_REQUESTS, complete_command(kind)
            )
    counted = shared.counters
    assert counted.lookup_requests == counted.partitions_metadata_requests == 1
    assert counted.get_schema_requests == 1


@pytest.mark.parametrize("state", list(ProxyConnectionState))
async def test_a_command_without_a_body_closes_the_connection(state: ProxyConnectionState) -> None:
    shared, found = parts(), {}
    with no_errors_logged():
        for kind in TYPES:
            found[kind] = await outcome(ProxyConnection(shared), state, pb.BaseCommand(type=kind))
    assert found == dict.fromkeys(TYPES, CLOSED)


@pytest.mark.parametrize("kind", sorted(LEGAL[State.PROXY_LOOKUP_REQUESTS]), ids=type_name)
async def test_a_command_with_the_body_of_another_command_closes_the_connection(kind: int) -> None:
    shared, found = parts(), set()
    with no_errors_logged():
        for body in TYPES:
            if body != kind:
                client = wire(State.PROXY_LOOKUP_REQUESTS, shared)
                client.say(complete_command(kind, body))
                found.add(client.closed)
    assert found == {True}
