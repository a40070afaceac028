"""Consumers and readers against a broker, directly and through a proxy."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from client.client import Client
from client.consumers.consumer import Consumer
from client.consumers.options import ConsumerBatchReceivePolicy, ConsumerDeadLetterPolicy
from client.messages.enums import CompressionType, ConsumerType, InitialPosition
from client.messages.message import Message
from client.messages.message_id import MessageId
from tests.integration.client.server import ROLES, Server, lose_connections, only_here, served
from tests.support.processes.cluster import until

EARLIEST = InitialPosition.Earliest
SHARED = ConsumerType.Shared


@asynccontextmanager
async def client_of(role: str = "broker", **keys: str) -> AsyncIterator[tuple[str, Client]]:
    """Have a client of broker or proxy, and a new topic."""
    async with served(role, keys) as server, Client(server.service_url) as client:
        yield server.topic(), client


async def publish(client: Client, topic: str, count: int, **options: Any) -> list[MessageId]:
    """Send messages with their numbers as payloads; return the ids."""
    async with await client.create_producer(topic, **options) as producer:
        return list(
            await asyncio.gather(*[producer.send(b"%d" % number) for number in range(count)])
        )


async def take(consumer: Consumer, count: int) -> list[Message]:
    return [await consumer.receive(20_000) for _ in range(count)]


async def backlog(client: Client, topic: str) -> int:
    """Return the backlog of the subscription."""
    consumer = await client.subscribe(topic, "s", SHARED)
    (stats,) = (await consumer.get_broker_consumer_stats()).values()
    return stats.message_backlog


def payloads(messages: list[Message]) -> list[bytes]:
    return [message.data() for message in messages]


def expected(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@ROLES
async def test_published_messages_are_received_in_order_and_acknowledged(client, topic) -> None:
    consumer = await client.subscribe(topic, "s")
    await publish(client, topic, 2_500)
    messages = await take(consumer, 2_500)
    for message in messages:
        await consumer.acknowledge(message)
    await consumer.close()
    assert await backlog(client, topic) == 0
    assert payloads(messages) == expected(2_500)


@ROLES
async def test_the_consumers_of_a_shared_subscription_get_each_message_once(client, topic) -> None:
    consumers = [
        await client.subscribe(topic, "s", SHARED, receiver_queue_size=5) for _ in range(3)
    ]
    await publish(client, topic, 300, batching_enabled=False)
    got: list[bytes] = []

    async def drain(consumer: Consumer) -> None:
        async for message in consumer:
            got.append(message.data())
            await consumer.acknowledge(message)

    async with asyncio.TaskGroup() as tasks:
        for consumer in consumers:
            tasks.create_task(drain(consumer))
        await until(lambda: len(got) == 300)
        for consumer in consumers:
            await consumer.close()
    assert sorted(got, key=int) == expected(300)


async def test_a_negatively_acknowledged_message_is_redelivered_with_a_higher_count(
    client: Client, topic: str
) -> None:
    consumer = await client.subscribe(topic, "s", SHARED, negative_ack_redelivery_delay_ms=100)
    await publish(client, topic, 1)
    (first,) = await take(consumer, 1)
    await consumer.negative_acknowledge(first)
    (second,) = await take(consumer, 1)
    assert [one.redelivery_count() for one in (first, second)] == [0, 1]
    assert first.message_id() == second.message_id()


@pytest.mark.parametrize("batched", [False, True])
async def test_a_message_refused_too_often_is_sent_to_the_dead_letter_topic(
    batched: bool, client: Client, topic: str
) -> None:
    policy = ConsumerDeadLetterPolicy(2, initial_subscription_name="kept")
    consumer = await client.subscribe(
        topic, "s", SHARED, negative_ack_redelivery_delay_ms=50, dead_letter_policy=policy
    )
    ids = await publish(client, topic, 2, batching_enabled=batched)
    for _ in range(3):
        for message in await take(consumer, 2):
            await consumer.negative_acknowledge(message)
    letters = await client.subscribe(f"{topic}-s-DLQ", "kept")
    messages = await take(letters, 2)
    assert payloads(messages) == expected(2)
    assert messages[0].properties() == {
        "REAL_TOPIC": topic,
        "REAL_SUBSCRIPTION": "s",
        "ORIGIN_MESSAGE_ID": origin(ids[0], batched=batched),
        "ORIGIN_MESSAGE_IDY_TIME": origin(ids[0], batched=batched),
    }
    await until(lambda: consumer.statistics().topics[0].acknowledgements_pending == 0)
    await consumer.close()
    assert await backlog(client, topic) == 0
    assert consumer.statistics().dead_letters == 2


async def test_null_and_chunked_messages_reach_the_dead_letter_topic_unchanged() -> None:
    async with client_of(maxMessageSize="20000") as (topic, client):
        policy = ConsumerDeadLetterPolicy(1, initial_subscription_name="kept")
        consumer = await client.subscribe(
            topic, "s", SHARED, negative_ack_redelivery_delay_ms=50, dead_letter_policy=policy
        )
        large = bytes(range(256)) * 200
        options = {"batching_enabled": False, "chunking_enabled": True}
        async with await client.create_producer(topic, **options) as producer:
            await producer.send(None, partition_key="gone")
            await producer.send(large)
        for _ in range(2):
            for message in await take(consumer, 2):
                await consumer.negative_acknowledge(message)
        letters = await client.subscribe(f"{topic}-s-DLQ", "kept")
        null, whole = await take(letters, 2)
        assert (null.has_null_value(), null.partition_key()) == (True, "gone")
        assert whole.data() == large


def origin(message_id: MessageId, *, batched: bool) -> str:
    """Return an id in Java's form."""
    text = f"{message_id.ledger_id()}:{message_id.entry_id()}:-1"
    return f"{text}:0" if batched else text


async def test_reconsume_later_redelivers_a_message_from_the_retry_topic(client, topic) -> None:
    consumer = await client.subscribe(
        topic, "s", SHARED, dead_letter_policy=ConsumerDeadLetterPolicy(1), retry_enabled=True
    )
    letters = await client.subscribe(f"{topic}-s-DLQ", "kept")
    await publish(client, topic, 1)
    (first,) = await take(consumer, 1)
    await consumer.reconsume_later(first, 100, {"why": "busy"})
    (second,) = await take(consumer, 1)
    await consumer.reconsume_later(second, 100)
    (dead,) = await take(letters, 1)
    assert second.topic_name() == f"{topic}-s-RETRY"
    own = second.properties()
    assert (own["RECONSUMETIMES"], own["DELAY_TIME"], own["why"]) == ("1", "100", "busy")
    assert own["REAL_TOPIC"] == first.topic_name()
    assert dead.data() == b"0"


@pytest.mark.parametrize("compression", list(CompressionType))
async def test_a_chunked_message_is_received_as_one_message(compression: CompressionType) -> None:
    async with client_of(maxMessageSize="20000") as (topic, client):
        consumer = await client.subscribe(topic, "s", receiver_queue_size=1)
        most = (await client.connection_of(topic)).max_message_size
        content = random.Random(1).randbytes(3 * most)
        async with await client.create_producer(
            topic, batching_enabled=False, chunking_enabled=True, compression_type=compression
        ) as producer:
            message_id = await producer.send(content)
            await producer.send(b"next")
        message, following = await take(consumer, 2)
        await consumer.acknowledge(message)
        await consumer.acknowledge(following)
        await consumer.close()
        assert message.data() == content
        assert message.message_id() == message_id
        assert await backlog(client, topic) == 0


async def test_a_consumer_of_several_topics_receives_from_all_their_partitions(
    server: Server, client: Client
) -> None:
    await server.create("a", "b", partitions=3)
    names = [server.topic("a"), server.topic("b")]
    consumer = await client.subscribe(names, "s", initial_position=EARLIEST)
    for name in names:
        await publish(client, name, 30, batching_enabled=False)
    messages = await take(consumer, 60)
    await consumer.acknowledge(messages)
    assert sorted(payloads(messages), key=int) == sorted(expected(30) * 2, key=int)
    topics = {message.topic_name() for message in messages}
    assert topics == {f"{name}-partition-{index}" for name in names for index in range(3)}
    assert {message.message_id().topic_name for message in messages} == topics


@ROLES
async def test_seek_moves_a_subscription_to_a_message_or_a_time(client: Client, topic: str) -> None:
    consumer = await client.subscribe(topic, "s")
    await publish(client, topic, 10, batching_enabled=False)
    messages = await take(consumer, 10)
    await consumer.seek(messages[3].message_id())
    behind = await take(consumer, 6)
    await consumer.seek(0)
    everything = await take(consumer, 10)
    await consumer.seek(MessageId.latest)
    await publish(client, topic, 1)
    assert payloads(behind) == expected(10)[4:]
    assert payloads(everything) == expected(10)
    assert payloads(await take(consumer, 1)) == [b"0"]


@ROLES
async def test_a_reader_reads_all_messages_after_its_start_position(client, topic) -> None:
    ids = await publish(client, topic, 100)
    async with await client.create_reader(topic, ids[49]) as reader:
        got = []
        while await reader.has_message_available():
            got.append((await reader.read_next()).data())
        await reader.seek(0)
        first = await reader.read_next()
    assert got == expected(100)[50:]
    assert first.data() == b"0"
    latest = await client.create_reader(topic, MessageId.latest)
    assert not await latest.has_message_available()
    await publish(client, topic, 1)
    assert await latest.has_message_available()


async def test_a_consumer_receives_every_message_despite_lost_connections(client, topic) -> None:
    consumer = await client.subscribe(topic, "s", receiver_queue_size=10)
    await publish(client, topic, 100, batching_enabled=False)
    got = set()
    for turn in range(4):
        for message in await take(consumer, 20):
            got.add(message.data())
            await consumer.acknowledge(message)
        if turn < 3:
            await lose_connections(client)
    while len(got) < 100:
        (message,) = await take(consumer, 1)
        got.add(message.data())
        await consumer.acknowledge(message)
    assert sorted(got, key=int) == expected(100)
    assert consumer.statistics().topics[0].reconnections >= 1


async def test_only_unacknowledged_messages_of_a_batch_are_redelivered(client, topic) -> None:
    options: dict[str, Any] = {"batch_index_ack_enabled": True, "initial_position": EARLIEST}
    await publish(client, topic, 10)
    consumer = await client.subscribe(topic, "s", SHARED, **options)
    messages = await take(consumer, 10)
    await consumer.acknowledge(messages[::2])
    await consumer.close()
    again = await client.subscribe(topic, "s", SHARED, **options)
    assert payloads(await take(again, 5)) == expected(10)[1::2]


async def test_batch_receive_returns_as_many_messages_as_its_policy_allows(client, topic) -> None:
    policy = ConsumerBatchReceivePolicy(50, -1, 5_000)
    consumer = await client.subscribe(topic, "s", batch_receive_policy=policy)
    await publish(client, topic, 100)
    assert payloads(await consumer.batch_receive()) == expected(50)
    assert payloads(await consumer.batch_receive()) == expected(100)[50:]


async def test_a_failover_consumer_knows_whether_it_is_active() -> None:
    async with client_of(activeConsumerFailoverDelayTimeMillis="0") as (topic, client):
        consumers = [
            await client.subscribe(topic, "s", ConsumerType.Failover, consumer_name=name)
            for name in ("a", "b")
        ]
        await until(
            lambda: sorted(map(str, [c.is_active() for c in consumers])) == ["False", "True"]
        )
        (active,) = [one for one in consumers if one.is_active()]
        (other,) = [one for one in consumers if one is not active]
        await active.close()
        await until(other.is_active)


@pytest.mark.parametrize(
    "by_index", [True, pytest.param(False, marks=only_here("a key of the broker"))]
)
async def test_the_next_consumer_completes_a_partially_acknowledged_batch(by_index: bool) -> None:
    keys = {"acknowledgmentAtBatchIndexLevelEnabled": str(by_index).lower()}
    async with client_of("broker", **keys) as (_, client):
        # Given a consumer that acknowledges single messages, and one that does not
        await publish(client, "t", 10)
        first = await client.subscribe(
            "t", "s", SHARED, batch_index_ack_enabled=True, initial_position=EARLIEST
        )
        await first.acknowledge((await take(first, 10))[::2])
        await first.close()
        second = await client.subscribe("t", "s", SHARED)
        messages = await take(second, 5 if by_index else 10)
        await second.acknowledge(messages)
        await second.close()
        assert payloads(messages) == (expected(10)[1::2] if by_index else expected(10))
        assert await backlog(client, "t") == 0


async def test_a_seek_by_another_consumer_redelivers_acknowledged_messages_of_a_batch(
    client: Client, topic: str
) -> None:
    await client.subscribe(topic, "s", SHARED)
    await publish(client, topic, 10)
    first = await client.subscribe(topic, "t", SHARED, initial_position=EARLIEST)
    await first.acknowledge((await take(first, 10))[:5])
    second = await client.subscribe(topic, "t", SHARED)
    await second.seek(MessageId.earliest)
    await second.close()
    assert sorted(payloads(await take(first, 10))) == expected(10)


async def test_a_seek_does_not_wait_for_outstanding_ack_receipts(client, topic) -> None:
    await publish(client, topic, 3, batching_enabled=False)
    consumer = await client.subscribe(
        topic, "s", SHARED, initial_position=EARLIEST, ack_receipt_enabled=True
    )
    acknowledging = [
        asyncio.create_task(consumer.acknowledge(message)) for message in await take(consumer, 3)
    ]
    await asyncio.sleep(0)
    await consumer.seek(MessageId.earliest)
    assert payloads(await take(consumer, 3)) == expected(3)
    await asyncio.gather(*acknowledging, return_exceptions=True)
