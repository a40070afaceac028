"""Every command in every state of a broker's connection: served, refused or closed, no more."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.cnx import BrokerParts, ServerCnx, ServerCnxState
from broker.commands.table import COMMANDS
from broker.configuration.dynamic import DynamicConfiguration
from broker.listing.lister import TopicLister
from broker.policies.service import PolicyService
from broker.service import BrokerService
from broker.stores.memory import MemoryStore
from broker.topics.rules import TopicRules
from broker.topics.service import TopicService
from tests.support.processes.cluster import broker_config, no_errors_logged
from tests.support.processes.commands import TYPES, Wire, complete_command, outcome, type_name

START, CONNECTED, FAILED = ServerCnxState.START, ServerCnxState.CONNECTED, ServerCnxState.FAILED
Type = pb.BaseCommand
CLOSED = "closed"
LEGAL = {
    START: {Type.CONNECT: "CONNECTED", Type.PING: "PONG", Type.PONG: ""},
    CONNECTED: {
        Type.AUTH_RESPONSE: CLOSED,
        Type.PING: "PONG",
        Type.PONG: "",
        Type.LOOKUP: "LOOKUP_RESPONSE",
        Type.PARTITIONED_METADATA: "PARTITIONED_METADATA_RESPONSE",
        Type.GET_TOPICS_OF_NAMESPACE: "ERROR",
        Type.WATCH_TOPIC_LIST: "ERROR",
        Type.WATCH_TOPIC_LIST_CLOSE: "SUCCESS",
        Type.PRODUCER: "ERROR",
        Type.CLOSE_PRODUCER: "SUCCESS",
        Type.SUBSCRIBE: "ERROR",
        Type.UNSUBSCRIBE: "ERROR",
        Type.FLOW: "",
        Type.ACK: "",
        Type.REDELIVER_UNACKNOWLEDGED_MESSAGES: "",
        Type.CLOSE_CONSUMER: "SUCCESS",
        Type.SEEK: "ERROR",
        Type.GET_LAST_MESSAGE_ID: "ERROR",
        Type.CONSUMER_STATS: CLOSED,
        Type.GET_SCHEMA: "GET_SCHEMA_RESPONSE",
        Type.GET_OR_CREATE_SCHEMA: "GET_OR_CREATE_SCHEMA_RESPONSE",
        Type.NEW_TXN: "ERROR",
        Type.ADD_PARTITION_TO_TXN: "ERROR",
        Type.ADD_SUBSCRIPTION_TO_TXN: "ERROR",
        Type.END_TXN: "ERROR",
        Type.END_TXN_ON_PARTITION: CLOSED,
        Type.END_TXN_ON_SUBSCRIPTION: CLOSED,
        Type.TC_CLIENT_CONNECT_REQUEST: "ERROR",
    },
    FAILED: {},
}
"""Legal commands and their outcomes (``x`` is no namespace: hence the ERROR)."""


def parts(**keys: str) -> BrokerParts:
    service = BrokerService(broker_config(keys))
    service.store = MemoryStore()
    service.lister = TopicLister(service.store)
    service.dynamic = DynamicConfiguration(service.config, service.store, lambda _: None)
    service.policies = PolicyService(service.store, lambda: service.config.policies, service._clock)
    rules = TopicRules.of(service.config, service.config.policies)
    service.topics = TopicService(service.store, lambda _: rules)
    service._choose_ownership()
    service.schemas = service._schema_registry()
    service.messaging = service._messaging()
    return service._parts()


def wire(state: ServerCnxState, of: BrokerParts | None = None) -> Wire:
    found = Wire(ServerCnx(of or parts()))
    found.cnx.state = state
    return found


def test_the_command_table_holds_exactly_the_legal_commands_of_each_state() -> None:
    assert {state: set(COMMANDS.legal_in(state)) for state in ServerCnxState} == {
        state: set(row) for state, row in LEGAL.items()
    }


@pytest.mark.parametrize("state", list(ServerCnxState))
async def test_each_command_is_served_refused_or_closed_as_its_state_requires(
    state: ServerCnxState,
) -> None:
    shared, found = parts(), {}
    with no_errors_logged():
        for kind in TYPES:
            found[kind] = await outcome(ServerCnx(shared), state, complete_command(kind))
    assert found == {**dict.fromkeys(TYPES, CLOSED), **LEGAL[state]}


@pytest.mark.parametrize("state", list(ServerCnxState))
async def test_a_command_without_a_body_closes_the_connection(state: ServerCnxState) -> None:
    shared, found = parts(), {}
    with no_errors_logged():
        for kind in TYPES:
            found[kind] = await outcome(ServerCnx(shared), state, pb.BaseCommand(type=kind))
    assert found == dict.fromkeys(TYPES, CLOSED)


@pytest.mark.parametrize("kind", sorted(LEGAL[CONNECTED]), ids=type_name)
async def test_a_command_with_the_body_of_another_command_closes_the_connection(kind: int) -> None:
    shared, found = parts(), set()
    with no_errors_logged():
        for body in TYPES:
            if body != kind:
                client = wire(CONNECTED, shared)
                client.say(complete_command(kind, body))
                found.add(client.closed)
    assert found == {True}
