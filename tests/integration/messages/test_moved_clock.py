"""Time moved by a test: expiry, delays and inactivity happen, without a wait."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from client import Client, ConsumerType, InitialPosition
from limiter.clock import LoopClock
from tests.support.authentication.credentials import properties, token
from tests.support.peers.raw_peer import RawPeer, connect_command
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import cluster

CLOCK = "/admin/v2/floodgate/clock"
TOPIC = "persistent://public/default/orders"
STATS = "/admin/v2/persistent/public/default/orders/stats"
ON = {
    "floodgateFaultsEnabled": "true",
    "brokerDeleteInactiveTopicsEnabled": "true",
    "ttlDurationDefaultInSeconds": "600",
}


@asynccontextmanager
async def broker() -> AsyncIterator[tuple[Any, Client]]:
    async with (
        cluster(both=ON, clock=LoopClock()) as parts,
        rest_client(parts.broker) as rest,
        Client(parts.broker.service_url) as client,
    ):
        yield rest, client


async def advance(rest: Any, time: str) -> dict[str, Any]:
    answer = await rest.ask("POST", CLOCK, json.dumps({"advance": time}))
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.value
    return found


async def test_messages_older_than_their_time_to_live_are_acknowledged() -> None:
    async with broker() as (rest, client):
        consumer = await client.subscribe(TOPIC, "s", initial_position=InitialPosition.Earliest)
        await consumer.close()
        producer = await client.create_producer(TOPIC)
        await producer.send(b"old")
        await advance(rest, "5m")
        assert (await rest.ask("GET", STATS)).value["subscriptions"]["s"]["msgBacklog"] == 1
        await advance(rest, "10m")
        assert (await rest.ask("GET", STATS)).value["subscriptions"]["s"]["msgBacklog"] == 0


async def test_a_delayed_message_is_delivered_at_its_time() -> None:
    async with broker() as (rest, client):
        consumer = await client.subscribe(TOPIC, "s", consumer_type=ConsumerType.Shared)
        producer = await client.create_producer(TOPIC)
        await producer.send(b"later", deliver_after=timedelta(minutes=9))
        await producer.send(b"now")
        assert (await consumer.receive()).data() == b"now"
        await advance(rest, "9m")
        assert (await consumer.receive()).data() == b"later"


async def test_a_topic_unused_for_long_is_deleted() -> None:
    async with broker() as (rest, client):
        producer = await client.create_producer(TOPIC)
        await producer.close()
        await advance(rest, "1h")
        assert (await rest.ask("GET", STATS)).status == 404


async def test_the_clock_reports_its_advance_in_seconds() -> None:
    async with broker() as (rest, _):
        assert (await advance(rest, "1h"))["aheadSeconds"] == 3_600
        assert (await rest.ask("GET", CLOCK)).value["aheadSeconds"] == 3_600


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "is not a time to advance"),
        ('{"advance": "-1h"}', 'write it as {"advance": "1h"}'),
        ('{"advance": 5}', "is not a time to advance"),
        ('{"advance": "1h", "back": "1h"}', "is not a time to advance"),
        ('{"advance": "8d"}', "at most 7d at once"),
    ],
)
async def test_an_invalid_clock_request_is_refused_with_a_sentence(
    body: str, sentence: str
) -> None:
    async with broker() as (rest, _):
        answer = await rest.ask("POST", CLOCK, body)
        assert answer.status == 412
        assert sentence in answer.reason


async def test_without_the_key_a_clock_request_is_refused() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        answer = await rest.ask("POST", CLOCK, '{"advance": "1h"}')
        assert answer.status == 404
        assert "floodgateFaultsEnabled=true" in answer.reason


async def test_an_expired_token_closes_its_connection(tmp_path: Path) -> None:
    keys = properties(tmp_path, floodgateFaultsEnabled="true")
    async with cluster(broker=keys, clock=LoopClock()) as parts:
        in_half_an_hour = int(time.time()) + 1_800
        command = connect_command()
        command.connect.auth_method_name = "token"
        command.connect.auth_data = token(sub="ann", exp=in_half_an_hour)
        async with await RawPeer.connect(parts.broker.service_url) as peer:
            await peer.shake_hands(command)
            assert parts.broker.moved_clock is not None
            await parts.broker.moved_clock.advance(3_600)
            await peer.rest()
            assert not parts.broker.connections
