"""Consumers of patterns: topics come and go, directly and through a proxy, and under limits."""

import asyncio
import re
from contextlib import AsyncExitStack

import pytest

import proto.PulsarApi_pb2 as pb
from client.client import Client
from client.discovery.families import FAMILIES
from client.discovery.pattern_consumer import PatternConsumer
from client.discovery.polite import PoliteSchedule
from client.exceptions import InvalidConfiguration
from client.messages.enums import ConsumerType, InitialPosition
from limiter.clock import LoopClock
from limiter.memory.dual_limiter import LimitType
from tests.integration.client.server import ROLES, Server, lose_connections, only_here, served
from tests.support.processes.cluster import cluster, fill, topic_names, until

NS = "public/default"
BASE = f"persistent://{NS}/"
PATTERN = "t-.*"
PERIOD = 1
SHARED = ConsumerType.Shared


def full(*names: str) -> list[str]:
    return [BASE + name for name in names]


def topics(consumer: PatternConsumer) -> set[str]:
    return {name.rpartition("/")[2] for name in consumer._topics.topics}


async def subscribed(client: Client, pattern: str = BASE + PATTERN, **options) -> PatternConsumer:
    options = {"pattern_auto_discovery_period": PERIOD, **options}
    consumer = await client.subscribe(re.compile(pattern), "s", **options)
    assert isinstance(consumer, PatternConsumer)
    return consumer


@pytest.mark.parametrize("family", FAMILIES)
@ROLES
async def test_created_topics_are_subscribed_and_deleted_topics_dropped(
    family, server, client
) -> None:
    await server.create("t-a", "t-b", "other")
    consumer = await subscribed(client, server.topic(PATTERN), discovery_schedule=family)
    assert topics(consumer) == {"t-a", "t-b"}
    await server.create("t-c", "u")
    await server.delete("t-a")
    await until(lambda: topics(consumer) == {"t-b", "t-c"})
    producer = await client.create_producer(server.topic("t-c"))
    await producer.send(b"found")
    assert (await consumer.receive(20_000)).data() == b"found"


@pytest.mark.parametrize("family", ["polite", "java-poll"])
async def test_a_topic_recreated_between_two_listings_is_consumed_again(
    family: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served("broker") as server, Client(server.service_url) as client:
        await server.create("t-a")
        consumer = await subscribed(
            client,
            server.topic(PATTERN),
            discovery_schedule=family,
            pattern_auto_discovery_period=600,
            initial_position=InitialPosition.Earliest,
        )
        receiving = asyncio.create_task(consumer.receive(20_000))
        await server.delete("t-a")
        await until(lambda: "TopicNotFound" in caplog.text)
        await server.create("t-a")
        producer = await client.create_producer(server.topic("t-a"))
        await producer.send(b"again")
        assert (await receiving).data() == b"again"


@only_here("the broker must be told to filter no lists")
async def test_the_client_filters_a_listing_that_the_broker_did_not_filter() -> None:
    keys = {"enableBrokerSideSubscriptionPatternEvaluation": "false"}
    async with (
        cluster({NS: [*full("t-a"), *topic_names(NS, 5_000)]}, broker=keys) as parts,
        Client(parts.broker.service_url) as client,
    ):
        consumer = await subscribed(client)
        assert consumer.discovery.names == set(full("t-a"))
        await fill(parts.broker, {NS: full("t-b")})
        await until(lambda: topics(consumer) == {"t-a", "t-b"})
        assert consumer.discovery.names == set(full("t-a", "t-b"))


@pytest.mark.parametrize("family", ["polite", "java-watch"])
@ROLES
async def test_topic_changes_during_lost_connections_are_discovered(family, server, client) -> None:
    await server.create("t-a", "t-b")
    consumer = await subscribed(client, server.topic(PATTERN), discovery_schedule=family)
    await lose_connections(client)
    await server.create("t-c")
    await server.delete("t-a")
    await until(lambda: topics(consumer) == {"t-b", "t-c"})


async def test_all_partitions_of_a_matching_topic_are_subscribed(server, client) -> None:
    await server.create("t-p", partitions=3)
    consumer = await subscribed(client, server.topic(PATTERN))
    assert topics(consumer) == {f"t-p-partition-{index}" for index in range(3)}


async def test_a_pattern_without_a_match_subscribes_to_a_topic_created_later(
    server: Server, client: Client
) -> None:
    consumer = await subscribed(client, server.topic(PATTERN))
    await server.create("t-a")
    await until(lambda: topics(consumer) == {"t-a"})


async def test_a_pattern_consumer_does_not_recreate_a_deleted_topic(server, client) -> None:
    await server.create("t-a")
    consumer = await subscribed(client, server.topic(PATTERN))
    await server.delete("t-a")
    await until(lambda: not topics(consumer))
    listed = await client.topics_of_namespace(server.namespace)
    assert listed.topics == ()


@only_here("the broker's memory is taken from within")
@ROLES
async def test_all_pattern_consumers_subscribe_after_refused_listings(role, monkeypatch) -> None:
    # Given a server that holds memory for one listing, and lets one more wait
    names = [*full("t-a"), *topic_names(NS, 200)]
    size = sum(len(name) + 32 for name in names)
    refused = []
    list_failed = PoliteSchedule.list_failed

    def counted(schedule, failure):
        refused.append(failure)
        list_failed(schedule, failure)

    monkeypatch.setattr(PoliteSchedule, "list_failed", counted)
    limits = {"heap_max_bytes": 2 * size, "heap_queue_size": 1, "heap_timeout_seconds": 5.0}
    async with AsyncExitStack() as stack:
        options = {f"{role}_limits": limits, "clock": LoopClock()}
        parts = await stack.enter_async_context(cluster({NS: names}, **options))
        limiter = parts.part(role).limiter
        held = await limiter.acquire(LimitType.HEAP_MEMORY, 2 * size)
        clients = [Client(parts.part(role).service_url) for _ in range(20)]
        for client in clients:
            stack.push_async_callback(client.close)
        # When all come at once
        opening = [
            asyncio.create_task(subscribed(client, consumer_type=SHARED)) for client in clients
        ]
        await until(lambda: len(refused) >= len(clients) - 1)
        assert not any(one.done() for one in opening)
        limiter.release(held)
        consumers = await asyncio.gather(*opening)
        assert all(topics(consumer) == {"t-a"} for consumer in consumers)
        assert set(refused) == {pb.TooManyRequests}


@pytest.mark.parametrize(
    ("topic", "options", "sentence"),
    [
        ("persistent://public/default/t-(", {}, "is no regular expression"),
        ("persistent://.*/default/t", {}, "names no namespace"),
        (BASE + PATTERN, {"discovery_schedule": "rude"}, "is no discovery schedule"),
        (BASE + PATTERN, {"retry_enabled": True}, "retry"),
    ],
)
async def test_an_invalid_pattern_subscription_is_refused(topic, options, sentence, client) -> None:
    with pytest.raises(InvalidConfiguration, match=sentence):
        await client.subscribe(topic, "s", is_pattern_topic=True, **options)
