"""Every waiting call may be cancelled at each wait, and leaves nothing behind."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias

import pytest

import limiter.client_memory.memory_limit_controller as controller
from broker.cnx import ServerCnx
from broker.stores.changes import TopicChanges
from client.client import Client
from client.connection.attached import Attached
from client.consumers.options import ConsumerDeadLetterPolicy
from client.exceptions import PulsarException
from client.messages.enums import ConsumerType, InitialPosition, ProducerAccessMode
from client.messages.message_id import MessageId
from limiter.client_memory.reservation import Reservation
from proto.names import NamespaceName
from tests.support.processes.cluster import Cluster, cluster, until
from tests.support.suspensions import cancelled_at

TOPIC = "persistent://public/default/cancelled"
PARTED = f"{TOPIC}-parted"
PART_BYTES = 1_000
LIMIT = 512 * 1024
Call: TypeAlias = "Coroutine[Any, Any, object]"


class Reservations:
    """All reservations of a client's memory, each with its end recorded."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        made = self.made = list[Reservation]()

        class Recorded(Reservation):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args)
                made.append(self)

        patch.setattr(controller, "Reservation", Recorded)

    def check(self, client: Client) -> None:
        """Check that live reservations sum up to the used bytes."""
        live = [one for one in self.made if not one.released]
        assert sum(one.size for one in live) == client.memory.current_usage
        assert len(live) == client.memory.statistics().reservations


async def producer(client: Client) -> Call:
    return client.create_producer(TOPIC)


async def producer_of_partitions(client: Client) -> Call:
    return client.create_producer(PARTED, access_mode=ProducerAccessMode.WaitForExclusive)


async def first_send_to_partitions(client: Client) -> Call:
    lazy = await client.create_producer(PARTED, lazy_start_partitioned_producers=True)
    return lazy.send(b"x")


async def send_that_waits_for_memory(client: Client) -> Call:
    one = await client.create_producer(TOPIC, chunking_enabled=True, batching_enabled=False)
    one.send_nowait(bytes(LIMIT + 1))  # In chunks: the receipt takes a while.
    return one.send(b"x")


async def send_in_parts(client: Client) -> Call:
    one = await client.create_producer(TOPIC, chunking_enabled=True, batching_enabled=False)
    return one.send(bytes(3 * PART_BYTES))


async def flush(client: Client) -> Call:
    one = await client.create_producer(TOPIC)
    one.send_nowait(b"x")
    return one.flush()


async def close_of_a_producer(client: Client) -> Call:
    one = await client.create_producer(PARTED)
    one.send_nowait(b"x")
    return one.close()


async def close_of_a_client(client: Client) -> Call:
    one = await client.create_producer(TOPIC)
    one.send_nowait(b"x")
    await client.subscribe(TOPIC, "s")
    return client.close()


async def consumer(client: Client) -> Call:
    return client.subscribe([TOPIC, PARTED], "s", ConsumerType.Shared)


async def consumer_of_a_pattern(client: Client) -> Call:
    return client.subscribe(f"{TOPIC}.*", "s", ConsumerType.Shared, is_pattern_topic=True)


async def close_of_a_consumer_of_several(client: Client) -> Call:
    return (await client.subscribe([TOPIC, PARTED], "s", ConsumerType.Shared)).close()


async def reader(client: Client) -> Call:
    return client.create_reader(TOPIC, MessageId.earliest)


async def table_view(client: Client) -> Call:
    return client.create_table_view(TOPIC)


async def partitions(client: Client) -> Call:
    return client.get_topic_partitions(PARTED)


def of_a_consumer(call: Callable[[Any], Call]) -> Callable[[Client], Awaitable[Call]]:
    """Return the call of a consumer with some messages received and some queued."""

    async def prepared(client: Client) -> Call:
        one = await client.subscribe(
            TOPIC,
            "s",
            ConsumerType.Shared,
            initial_position=InitialPosition.Earliest,
            ack_receipt_enabled=True,
            ack_group_time_ms=1,
            retry_enabled=True,
            dead_letter_policy=ConsumerDeadLetterPolicy(3),
        )
        sender = await client.create_producer(TOPIC, batching_enabled=False)
        await asyncio.gather(*(sender.send(b"%d" % n) for n in range(3)))
        one.message = await one.receive()  # type: ignore[attr-defined]
        return call(one)

    return prepared


CALLS: dict[str, Callable[[Client], Awaitable[Call]]] = {
    "create_producer": producer,
    "create_producer of partitions": producer_of_partitions,
    "send to a partition that is started": first_send_to_partitions,
    "send that waits for memory": send_that_waits_for_memory,
    "send in parts": send_in_parts,
    "flush": flush,
    "Producer.close": close_of_a_producer,
    "Client.close": close_of_a_client,
    "subscribe": consumer,
    "subscribe to a pattern": consumer_of_a_pattern,
    "create_reader": reader,
    "create_table_view": table_view,
    "get_topic_partitions": partitions,
    "receive": of_a_consumer(lambda one: one.receive()),
    "batch_receive": of_a_consumer(lambda one: one.batch_receive()),
    "acknowledge": of_a_consumer(lambda one: one.acknowledge(one.message)),
    "negative_acknowledge": of_a_consumer(lambda one: one.negative_acknowledge(one.message)),
    "reconsume_later": of_a_consumer(lambda one: one.reconsume_later(one.message, 1)),
    "seek": of_a_consumer(lambda one: one.seek(MessageId.earliest)),
    "get_last_message_ids": of_a_consumer(lambda one: one.get_last_message_ids()),
    "unsubscribe": of_a_consumer(lambda one: one.unsubscribe()),
    "Consumer.close of several": close_of_a_consumer_of_several,
    "Consumer.close": of_a_consumer(lambda one: one.close()),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_cancelled_at_any_await_leaves_nothing_behind(name: str, monkeypatch) -> None:
    async with cluster(both={"maxMessageSize": str(PART_BYTES)}) as parts:
        namespace = NamespaceName.parse("public/default")
        await parts.broker.store.apply(namespace, TopicChanges((), (), {PARTED: 2}))
        reservations = Reservations(monkeypatch)
        for number in count(1):
            ended = [
                await cancelled_once(
                    parts, CALLS[name], number, reservations, as_it_ends=as_it_ends
                )
                for as_it_ends in (False, True)
            ]
            if all(ended):
                break


def attached(connections: Iterable[Attached | ServerCnx]) -> list[tuple[list[int], list[int]]]:
    """Ids of each connection's producers and consumers, at one end."""
    return sorted((sorted(one.producers), sorted(one.consumers)) for one in connections)


async def cancelled_once(
    parts: Cluster,
    prepare: Callable[[Client], Awaitable[Call]],
    number: int,
    reservations: Reservations,
    *,
    as_it_ends: bool,
) -> bool:
    """Cancel a call at one wait; return whether the call ended earlier."""
    before = asyncio.all_tasks()
    client = Client(parts.broker.service_url, memory_limit_bytes=LIMIT)
    call = await prepare(client)
    task = cancelled_at(call, number, as_it_ends=as_it_ends)
    await asyncio.wait([task])
    reservations.check(client)
    with suppress(PulsarException):
        after = await client.create_producer(f"{TOPIC}-after", batching_enabled=False)
        await after.send(b"x")
    reservations.check(client)
    connections = [await one for one in client._pool._connections.values()]
    await until(lambda: not any(one._pending for one in connections), "requests are pending")

    def agree() -> bool:
        ours = (one.attached for one in connections if not one.closed)
        return attached(ours) == attached(parts.broker.connections)

    await until(agree, "the broker has others than the client")
    await client.close()
    figures = client.memory.statistics()
    assert (figures.usage_bytes, figures.reservations, figures.waiters) == (0, 0, 0)
    await until(lambda: asyncio.all_tasks() == before)
    if not task.cancelled():
        task.result()
    return not task.cancelled()
