"""Authorization of every command; refusals are answered."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from broker.authorization.questions import Asked, CommandAuthorization
from broker.authorization.revocation import Revocation
from broker.cnx import ServerCnxState
from broker.commands.table import COMMANDS
from broker.stores.changes import StoreError
from proto.names import NamespaceName, TopicName
from server.authentication.refused import Subject
from server.connection.request_errors import RequestError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.security.granted import granted_world, session_named
from tests.unit.broker.commands.test_producing import client, producer_command, subscribe

ASKED = {
    "LOOKUP",
    "PARTITIONED_METADATA",
    "PRODUCER",
    "SUBSCRIBE",
    "GET_TOPICS_OF_NAMESPACE",
    "WATCH_TOPIC_LIST",
    "GET_SCHEMA",
    "GET_OR_CREATE_SCHEMA",
    "END_TXN_ON_PARTITION",
    "END_TXN_ON_SUBSCRIPTION",
}
"""Authorized at every request."""
OF_WHAT_WAS_OPENED = {
    "SEND",
    "CLOSE_PRODUCER",
    "FLOW",
    "ACK",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "CLOSE_CONSUMER",
    "UNSUBSCRIBE",
    "SEEK",
    "GET_LAST_MESSAGE_ID",
    "CONSUMER_STATS",
    "WATCH_TOPIC_LIST_CLOSE",
}
"""Commands with the id of a producer or consumer authorized when this connection opened it."""
OF_NOTHING = {"CONNECT", "AUTH_RESPONSE", "PING", "PONG"}
ALWAYS_REFUSED = {
    "NEW_TXN",
    "ADD_PARTITION_TO_TXN",
    "ADD_SUBSCRIPTION_TO_TXN",
    "END_TXN",
    "TC_CLIENT_CONNECT_REQUEST",
}
ORDERS = TopicName.parse("persistent://acme/shop/orders")
MISSING = TopicName.parse("persistent://missing/shop/orders")
OF_TOPICS = [one for one in Asked if one not in (Asked.LIST, Asked.WATCH)]


def test_every_legal_command_is_classified_by_its_authorization() -> None:
    found = {
        pb.BaseCommand.Type.Name(kind)
        for state in ServerCnxState
        for kind in (*COMMANDS.legal_in(state), *COMMANDS.frames_in(state))
    }
    known = [ASKED, OF_WHAT_WAS_OPENED, OF_NOTHING, ALWAYS_REFUSED]
    assert found == set().union(*known)
    assert len(found) == sum(map(len, known))


async def commands(*, pulsar_compatible: bool) -> CommandAuthorization:
    service = await granted_world()
    revocation = Revocation(service, (), ManualClock())
    return CommandAuthorization(service, revocation, pulsar_compatible=pulsar_compatible)


async def refusal(work: Coroutine[object, object, None]) -> RequestError:
    with pytest.raises(RequestError) as caught:
        await work
    return caught.value


@pytest.mark.parametrize("asked", OF_TOPICS)
async def test_profile_floodgate_refuses_a_missing_tenant_like_a_missing_grant(
    asked: Asked,
) -> None:
    authorization = await commands(pulsar_compatible=False)
    nobody = session_named("nobody")
    there = await refusal(authorization.check(nobody, ORDERS, asked))
    missing = await refusal(authorization.check(nobody, MISSING, asked))
    assert (there.server_error, there.message) == (missing.server_error, missing.message)
    assert there.server_error == pb.AuthorizationError


@pytest.mark.parametrize("asked", [Asked.LIST, Asked.WATCH])
@pytest.mark.parametrize("pulsar_compatible", [False, True])
async def test_a_connection_without_a_session_may_not_list_or_watch_topics(
    asked, *, pulsar_compatible
) -> None:
    authorization = await commands(pulsar_compatible=pulsar_compatible)
    namespace = NamespaceName.parse("acme/shop")
    assert not authorization.lists_surely(None, namespace)
    refused = await refusal(authorization.check(None, namespace, asked))
    assert refused.server_error == pb.AuthorizationError


@pytest.mark.parametrize(
    "command", [producer_command(), subscribe(1)], ids=["producer", "consumer"]
)
async def test_an_id_in_use_is_answered_only_to_an_authorized_client(command) -> None:
    found = await client()
    cnx: Any = found.cnx
    await found.ask(command)
    cnx.parts = replace(cnx.parts, authorization=await commands(pulsar_compatible=True))
    (answer,) = await found.ask(command)
    assert answer.error.error == pb.AuthorizationError


async def test_refused_commands_are_counted_by_subject_and_operation(monkeypatch) -> None:
    authorization, told = await commands(pulsar_compatible=False), []
    monkeypatch.setattr(authorization.service._refused, "add", lambda *what: told.append(what[1:]))
    nobody = session_named("nobody")
    await refusal(authorization.check(nobody, ORDERS, Asked.PRODUCE))
    await refusal(authorization.check(None, ORDERS.namespace, Asked.LIST))
    await authorization.check(session_named("super"), ORDERS, Asked.PRODUCE)
    assert told == [
        (Subject.TOPIC, "PRODUCE", str(ORDERS)),
        (Subject.NAMESPACE, "GET_TOPICS", "acme/shop"),
    ]


async def test_a_failing_store_is_a_metadata_error_and_counts_no_refusal(monkeypatch) -> None:
    authorization = await commands(pulsar_compatible=True)

    async def fail(*_: object) -> bool:
        await asyncio.sleep(0)
        raise StoreError("away")

    monkeypatch.setattr(authorization.service, "allows", fail)
    nobody, shop = session_named("nobody"), ORDERS.namespace
    for work in (
        authorization.check(nobody, ORDERS, Asked.PRODUCE),
        authorization.check(nobody, shop, Asked.LIST),
    ):
        assert (await refusal(work)).server_error == pb.MetadataError
    assert not any(authorization.service._refused.counts.values())


@pytest.mark.parametrize("asked", [Asked.GET_SCHEMA, Asked.MAKE_SCHEMA])
async def test_schema_commands_need_no_grant_only_in_profile_pulsar(asked: Asked) -> None:
    nobody = session_named("nobody")
    await (await commands(pulsar_compatible=True)).check(nobody, ORDERS, asked)
    await refusal((await commands(pulsar_compatible=False)).check(nobody, ORDERS, asked))
