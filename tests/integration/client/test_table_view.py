"""A table of a topic's newest values over a broker."""

import asyncio

import pytest

from broker.messages.topic import PersistentTopic
from client import AlreadyClosed, Client, InitialPosition
from client.schema import StringSchema
from limiter.clock import LoopClock
from proto.names import TopicName
from tests.integration.client.server import served
from tests.support.processes.cluster import cluster


class Changes:
    """A table listener's changes, and an event at enough of them."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []
        self._more = asyncio.Event()

    def __call__(self, key: str, value: object) -> None:
        self.seen.append((key, value))
        self._more.set()

    async def count(self, count: int) -> None:
        while len(self.seen) < count:
            self._more.clear()
            await self._more.wait()


async def test_a_table_follows_the_newest_value_of_each_key(client: Client, topic: str) -> None:
    producer = await client.create_producer(topic, schema=StringSchema())
    for key, value in (("a", "1"), ("b", "2"), ("a", "3"), (None, "no key"), ("c", "4")):
        await producer.send(value, partition_key=key)
    await producer.send(None, partition_key="c")
    async with await client.create_table_view(topic, schema=StringSchema()) as table:
        assert dict(table) == {"a": "3", "b": "2"}
        assert (table.get("a"), table.get("c"), len(table)) == ("3", None, 2)
        assert "a" in table
        assert "c" not in table
        changes = Changes()
        table.for_each_and_listen(changes)
        assert changes.seen == [("a", "3"), ("b", "2")]
        await producer.send("5", partition_key="b")
        await producer.send(None, partition_key="a")
        await changes.count(4)
        assert changes.seen[2:] == [("b", "5"), ("a", None)]
        assert dict(table) == {"b": "5"}


async def test_a_table_of_a_new_topic_is_empty(client: Client, topic: str) -> None:
    async with await client.create_table_view(topic) as table:
        assert len(table) == 0
        assert table.topic() == topic


async def test_messages_of_a_batch_update_the_table_in_order(client: Client, topic: str) -> None:
    producer = await client.create_producer(topic, batching_max_publish_delay_ms=50)
    await asyncio.gather(
        *(
            producer.send(str(number).encode(), partition_key=str(number % 7))
            for number in range(300)
        )
    )
    async with await client.create_table_view(topic) as table:
        assert sorted(table.values()) == sorted(str(number).encode() for number in range(293, 300))


async def test_a_failing_listener_is_skipped(client: Client, topic: str, caplog) -> None:
    def fails(key: str, value: object) -> None:
        raise RuntimeError("listener")

    changes = Changes()
    producer = await client.create_producer(topic)
    async with await client.create_table_view(topic) as table:
        table.for_each_and_listen(fails)
        table.for_each_and_listen(changes)
        caplog.set_level("CRITICAL", "client.table_view")
        await producer.send(b"1", partition_key="a")
        await changes.count(1)
        assert changes.seen == [("a", b"1")]


async def test_a_closed_table_keeps_its_values(client: Client, topic: str) -> None:
    producer = await client.create_producer(topic)
    await producer.send(b"1", partition_key="a")
    table = await client.create_table_view(topic, "my-table")
    await table.close()
    await table.close()
    assert dict(table) == {"a": b"1"}
    consumer = await client.subscribe(topic, "my-table", initial_position=InitialPosition.Earliest)
    assert (await consumer.receive()).data() == b"1"


async def test_closing_the_client_is_no_failure_of_its_tables(client: Client, topic: str) -> None:
    table = await client.create_table_view(topic)
    await client.close()
    assert table.failure is None
    with pytest.raises(AlreadyClosed):
        await client.create_table_view(topic)


async def test_the_table_of_a_partitioned_topic_is_filled_under_a_small_memory_limit() -> None:
    async with (
        served() as server,
        Client(server.service_url, memory_limit_bytes=50_000) as client,
    ):
        await server.create("t", partitions=2)
        producer = await client.create_producer(server.topic(), schema=StringSchema())
        for turn in range(3):
            text = str(turn).ljust(4_000)
            await asyncio.gather(
                *(producer.send(text, partition_key=str(key)) for key in range(20))
            )
        async with await client.create_table_view(server.topic(), schema=StringSchema()) as table:
            changes = Changes()
            table.for_each_and_listen(changes)
            await producer.send("new", partition_key="0")
            await changes.count(21)
            values = {key: value.strip() for key, value in table.items()}
            assert values == {"0": "new"} | {str(key): "2" for key in range(1, 20)}
        assert client.memory.current_usage == 0


@pytest.mark.parametrize("deleted", ["b", "ab"])
async def test_a_table_is_ready_though_the_last_messages_are_compacted_away(topic, deleted) -> None:
    async with (
        cluster(topics={}, clock=LoopClock()) as parts,
        Client(parts.broker.service_url) as client,
    ):
        producer = await client.create_producer(topic)
        for key, value in (("a", b"1"), ("b", b"2"), *((key, b"") for key in deleted)):
            await producer.send(value, partition_key=key)
        loaded = parts.broker.messaging.loaded_topics.loaded(TopicName.parse(topic))
        assert isinstance(loaded, PersistentTopic)
        loaded.compaction.start()
        await loaded.compaction.finished()
        async with await client.create_table_view(topic) as table:
            assert dict(table) == {key: b"1" for key in "a" if key not in deleted}
