"""Faults on command over REST, at broker and proxy, with connected clients."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock
from tests.support.peers.frames import ping
from tests.support.peers.raw_peer import lookup_command
from tests.support.peers.rest_client import RestClient, rest_client
from tests.support.processes.cluster import cluster, topic_names

FAULTS = "/admin/v2/floodgate/faults"
RESET = "/admin/v2/floodgate/reset"
ON = {"floodgateFaultsEnabled": "true"}
TOPIC = "persistent://public/default/orders"
NOT_READY = '{"on":["LOOKUP"],"when":{"times":1},"do":{"action":"error","error":"ServiceNotReady"}}'
ROLES = ["broker", "proxy"]


@pytest.mark.parametrize("role", ROLES)
async def test_a_fault_acts_on_an_already_open_connection(role: str) -> None:
    async with cluster(both=ON) as parts, rest_client(parts.part(role)) as rest:
        peer = await parts.peer(role)
        fault = (await rest.ask("POST", FAULTS, NOT_READY)).value
        await peer.send(lookup_command(1, TOPIC), lookup_command(2, TOPIC))
        first, second = (await peer.command()).lookupTopicResponse, await peer.command()
        assert (first.request_id, first.error) == (1, pb.ServiceNotReady)
        assert second.lookupTopicResponse.response == pb.CommandLookupTopicResponse.Connect
        (listed,) = (await rest.ask("GET", FAULTS)).value
        assert listed == {**fault, "seen": 2, "fired": 1, "over": True}
        metrics = (await rest.ask("GET", "/metrics/")).text
        assert 'floodgate_faults_acted_total{cluster="standalone",action="error"} 1.0' in metrics


@pytest.mark.parametrize("role", ROLES)
async def test_a_wait_returns_once_the_fault_has_acted_as_often_as_requested(role: str) -> None:
    twice = NOT_READY.replace('"times":1', '"times":2')
    async with cluster(both=ON) as parts, rest_client(parts.part(role)) as rest:
        fault = (await rest.ask("POST", FAULTS, twice)).value["id"]
        waits = asyncio.create_task(rest.ask("GET", f"{FAULTS}/{fault}/wait?hits=2"))
        peer = await parts.peer(role)
        await peer.send(lookup_command(1, TOPIC), lookup_command(2, TOPIC))
        assert (await waits).value["fired"] == 2
        again = await rest.ask("GET", f"{FAULTS}/{fault}/wait?hits=2&timeoutMs=1")
        assert again.status == 200


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ("?hits=2", 412, "hits=2: fault-1 acts at most 1 times"),
        ("?hits=none", 412, "hits='none' should be a number from 1 to 1000000000"),
        ("?timeoutMs=0", 412, "timeoutMs='0' should be a number from 1 to 600000"),
        ("?timeoutMs=1", 408, "fault-1 acted 0 of 1 times within 1 ms"),
    ],
)
async def test_an_unsuccessful_wait_states_a_reason(query: str, status: int, sentence: str) -> None:
    async with cluster(both=ON, clock=LoopClock()) as parts, rest_client(parts.broker) as rest:
        await rest.ask("POST", FAULTS, NOT_READY)
        answer = await rest.ask("GET", f"{FAULTS}/fault-1/wait{query}")
        assert (answer.status, answer.reason) == (status, sentence)


async def test_a_fault_acts_on_an_already_open_tunnel_until_it_is_deleted() -> None:
    async with cluster(both=ON) as parts, rest_client(parts.proxy) as rest:
        target = parts.broker.service_url.removeprefix("pulsar://")
        peer = await parts.peer("proxy", target=target)
        fault = (await rest.ask("POST", FAULTS, NOT_READY.replace('"times":1', '"every":1'))).value
        await peer.send(lookup_command(1, TOPIC))
        assert (await peer.command()).lookupTopicResponse.error == pb.ServiceNotReady
        await rest.done("DELETE", f"{FAULTS}/{fault['id']}")
        await peer.send(ping(), lookup_command(2, TOPIC))
        assert (await peer.command()).type == pb.BaseCommand.PONG
        assert (await peer.command()).lookupTopicResponse.request_id == 2


@pytest.mark.parametrize("role", ROLES)
async def test_faults_and_reset_are_404_without_floodgate_faults_enabled(role: str) -> None:
    async with cluster() as parts, rest_client(parts.part(role)) as rest:
        for method in ("POST", "GET", "DELETE"):
            answer = await rest.ask(method, FAULTS, NOT_READY)
            assert answer.status == 404
            assert "floodgateFaultsEnabled=true" in answer.reason
        answer = await rest.ask("POST", RESET)
        assert answer.status == 404


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ("", 412, "JSON"),
        (
            '{"where":{"topic":"orders"},"do":{"action":"drop"}}',
            412,
            "not a valid fault: where.topic: no full name of a topic fits 'orders'",
        ),
        ("[]", 412, "not a valid fault"),
        ('{"do":{"action":"explode"}}', 412, "explode"),
        ('{"on":["NOTHING"],"do":{"action":"drop"}}', 412, "no command of the protocol"),
        ('{"do":{"action":"error","error":"Oops"}}', 412, "no error of the protocol"),
        ('{"do":{"action":"corruptChecksum"}}', 412, "SEND or MESSAGE"),
        ('{"do":{"action":"drop"},"wen":{}}', 412, "wen"),
        ('{"do":{"action":"delay"}}', 412, "delayMs"),
        (" " * 70_000, 413, "at most"),
    ],
)
async def test_an_invalid_fault_is_refused_with_a_reason(body, status, sentence) -> None:
    async with cluster(both=ON) as parts, rest_client(parts.broker) as rest:
        answer = await rest.ask("POST", FAULTS, body)
        assert answer.status == status
        assert sentence in answer.reason
        assert (await rest.ask("DELETE", f"{FAULTS}/fault-1")).status == 404


async def test_a_move_topic_fault_is_refused_by_a_proxy() -> None:
    async with cluster(both=ON) as parts, rest_client(parts.proxy) as rest:
        answer = await rest.ask("POST", FAULTS, '{"do":{"action":"moveTopic"}}')
        assert (answer.status, "at the broker" in answer.reason) == (412, True)


async def test_a_reset_broker_answers_like_a_new_broker() -> None:
    topics = {"acme/orders": topic_names("acme/orders", 10), "public/default": [TOPIC]}
    async with cluster(broker=ON) as new, rest_client(new.broker) as rest:
        before = await _told(rest)
    async with cluster(topics, broker=ON) as parts, rest_client(parts.broker) as rest:
        await rest.done("POST", FAULTS, NOT_READY)
        await rest.done("POST", "/admin/v2/namespaces/acme/orders/retention", "{}")
        key = "/admin/v2/brokers/configuration/maxConcurrentLookupRequest/7"
        await rest.done("POST", key)
        await rest.done(
            "POST",
            "/admin/v2/schemas/public/default/orders/schema",
            '{"type":"STRING","schema":"","properties":{}}',
        )
        await rest.done("PUT", "/admin/v2/persistent/public/default/orders/subscription/mine")
        await rest.done("POST", RESET)
        assert await _told(rest) == before


async def _told(rest: RestClient) -> dict[str, object]:
    """Return a broker's description of all its parts."""
    paths = (
        "/admin/v2/tenants",
        "/admin/v2/namespaces/public",
        "/admin/v2/namespaces/public/default",
        "/admin/v2/namespaces/acme",
        "/admin/v2/persistent/public/default",
        "/admin/v2/persistent/public/default/orders/subscriptions",
        "/admin/v2/schemas/public/default/orders/schema",
        "/admin/v2/brokers/configuration/values",
        FAULTS,
    )
    return {path: (await rest.ask("GET", path)).text for path in paths}
