"""Fetching entries that are not in memory, and concurrent events."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.compaction.compacted_entries import CompactedEntries
from broker.messages.compaction.topic_compaction import SUBSCRIPTION as COMPACTION
from broker.messages.entry import Entry
from broker.messages.errors import MessageStoreError
from broker.messages.position import Position
from broker.messages.stores.managed_ledger import ManagedLedger, MessageStore
from broker.messages.stores.sqlite.database import ENTRY_BITS
from broker.messages.subscriptions.consumer import Consumer, ConsumerOptions
from broker.messages.subscriptions.dispatchers import dispatcher as dispatching
from broker.messages.subscriptions.dispatchers.dispatcher import READ_AGAIN_SECONDS, READ_ENTRIES
from broker.messages.subscriptions.subscription import Subscription
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import (
    NAME,
    KeptConnection,
    KeptTopic,
    consume,
    dispatched,
    ids,
)
from tests.support.stores.message_stores import message_store, opened, sqlite_store
from tests.support.subscriptions.recording_client import RecordingClient
from tests.support.subscriptions.stored_topic import StoredTopic

EXCLUSIVE, SHARED = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared
FAILOVER, KEY_SHARED = pb.CommandSubscribe.Failover, pb.CommandSubscribe.Key_Shared
KINDS = [EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED]
INDIVIDUALLY = [SHARED, KEY_SHARED]


class Fetches:
    """A topic's reads not answered from memory, held by tests.

    Attributes:
        begun: Number of reads.
    """

    def __init__(self, ledger: ManagedLedger) -> None:
        self.begun = 0
        self._may_end = asyncio.Event()
        self._may_end.set()
        ledger.fetch = self._held(ledger.fetch)
        ledger.fetch_each = self._held(ledger.fetch_each)

    def _held(
        self, fetch: Callable[..., Awaitable[list[Entry]]]
    ) -> Callable[..., Awaitable[list[Entry]]]:
        async def held(*args: object) -> list[Entry]:
            self.begun += 1
            entries = await fetch(*args)
            await self._may_end.wait()
            return entries

        return held

    def hold(self) -> None:
        """Hold reads until ``release``."""
        self._may_end.clear()

    def release(self) -> None:
        self._may_end.set()


class Stored(KeptTopic):
    """A topic with no entry in memory.

    Attributes:
        path: The database.
        fetches: Reads from the database.
    """

    path: Path
    fetches: Fetches

    async def stored(self, count: int, **how: object) -> list[Position]:
        """Store messages, evicted from memory."""
        positions = self.publish(count, **how)
        await self.ledger.flushed()
        return positions

    def damage(self, *positions: Position) -> None:
        """Alter entries in the database."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            for position in positions:
                row_id = (position.ledger_id << ENTRY_BITS) + position.entry_id
                changed = connection.execute(
                    "UPDATE entries SET data = X'00' WHERE row_id = ?", (row_id,)
                )
                assert changed.rowcount == 1


@asynccontextmanager
async def opened_topic(folder: Path, *, skip_damaged: bool = False) -> AsyncIterator[Stored]:
    """Open a topic in a database."""
    path = folder / "messages.db"
    store = sqlite_store(path, per_ledger=50, recent_bytes=0, skip_damaged=skip_damaged)
    async with opened(store):
        topic = Stored(await store.open_ledger(str(NAME)))
        topic.path, topic.fetches = path, Fetches(topic.ledger)
        yield topic


@pytest.fixture
async def topic(tmp_path: Path) -> AsyncIterator[Stored]:
    async with opened_topic(tmp_path) as topic:
        yield topic


async def delivered(subscription: Subscription) -> None:
    """Return when all deliverable entries are delivered and no fetch is running."""
    await settle()
    dispatcher = subscription.dispatcher
    while dispatcher._fetching is not None or dispatcher._is_due:
        if dispatcher._fetching is not None:
            await asyncio.wait([dispatcher._fetching])
        await settle()


def places(cnx: KeptConnection) -> list[tuple[int, int]]:
    """The positions of all messages so far."""
    return [(one.message_id.ledgerId, one.message_id.entryId) for one in cnx.messages]


async def consuming(
    topic: Stored, kind: pb.CommandSubscribe.SubType.ValueType, permits: int = 1_000
) -> tuple[Subscription, object, KeptConnection]:
    """Consume from the first message; a Failover consumer is already active."""
    subscription = topic.subscriptions().create("s", earliest=True)
    consumer, cnx = consume(subscription, kind, permits)
    if kind == FAILOVER:
        topic.clock.advance(10)
    return subscription, consumer, cnx


async def all_received(
    topic: Stored, kind: pb.CommandSubscribe.SubType.ValueType, count: int, **how: object
) -> tuple[list[Position], Subscription, object, KeptConnection]:
    """Deliver stored messages to a consumer that then has no permits left."""
    positions = await topic.stored(count, **how)
    subscription, consumer, cnx = await consuming(topic, kind, permits=count)
    await delivered(subscription)
    assert places(cnx) == positions
    cnx.take_entries()
    return positions, subscription, consumer, cnx


@pytest.mark.parametrize("kind", KINDS)
async def test_a_backlog_is_fetched_in_pieces_and_delivered_in_order(topic, kind) -> None:
    positions = await topic.stored(120)
    subscription, _, cnx = await consuming(topic, kind)
    await delivered(subscription)
    assert places(cnx) == positions
    assert topic.fetches.begun == 3


@pytest.mark.parametrize("kind", KINDS)
async def test_fetches_are_bounded_by_the_permits_of_the_consumer(topic, kind) -> None:
    positions = await topic.stored(20)
    subscription, consumer, cnx = await consuming(topic, kind, permits=3)
    await delivered(subscription)
    assert (places(cnx), topic.fetches.begun) == (positions[:3], 1)
    subscription.flow(consumer, 4)
    await delivered(subscription)
    assert (places(cnx), topic.fetches.begun) == (positions[:7], 2)


@pytest.mark.parametrize("kind", KINDS)
async def test_messages_published_during_a_fetch_are_delivered_afterwards(topic, kind) -> None:
    positions = await topic.stored(3)
    topic.fetches.hold()
    subscription, _, cnx = await consuming(topic, kind)
    await settle()
    positions += await topic.stored(2)
    await dispatched(subscription)
    assert (places(cnx), topic.fetches.begun) == ([], 1)
    topic.fetches.release()
    await delivered(subscription)
    assert places(cnx) == positions


@pytest.mark.parametrize("kind", KINDS)
async def test_messages_acknowledged_during_their_fetch_are_not_delivered(topic, kind) -> None:
    positions = await topic.stored(4)
    topic.fetches.hold()
    subscription, _, cnx = await consuming(topic, kind)
    await settle()
    subscription.skip_through(positions[1])
    topic.fetches.release()
    await delivered(subscription)
    assert places(cnx) == positions[2:]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_consumer_closed_during_a_fetch_gets_no_message_and_the_next_gets_all(
    topic: Stored, kind: pb.CommandSubscribe.SubType.ValueType
) -> None:
    positions = await topic.stored(4)
    topic.fetches.hold()
    subscription, consumer, cnx = await consuming(topic, kind)
    await settle()
    subscription.remove_consumer(consumer)
    topic.fetches.release()
    await delivered(subscription)
    assert subscription.dispatcher._fetched == []
    _, next_cnx = consume(subscription, kind, 10)
    topic.clock.advance(10)
    await delivered(subscription)
    assert (places(cnx), places(next_cnx)) == ([], positions)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_subscription_closed_during_a_fetch_delivers_nothing(topic, kind) -> None:
    await topic.stored(4)
    topic.fetches.hold()
    subscription, _, cnx = await consuming(topic, kind)
    await settle()
    subscription.close()
    topic.fetches.release()
    await settle()
    assert cnx.entries == []


@pytest.mark.parametrize("kind", [EXCLUSIVE, FAILOVER])
@pytest.mark.parametrize("turns", [0, 1, 20])
async def test_a_redelivery_during_a_fetch_delivers_each_message_exactly_once_more(
    topic: Stored, kind: pb.CommandSubscribe.SubType.ValueType, turns: int
) -> None:
    positions = await topic.stored(60)
    subscription, consumer, cnx = await consuming(topic, kind, permits=20)
    await delivered(subscription)
    assert places(cnx) == positions[:20]
    cnx.take_entries()
    topic.fetches.hold()
    subscription.flow(consumer, 200)
    subscription.dispatcher.run()
    for _ in range(turns):
        await asyncio.sleep(0)
    subscription.redeliver(consumer, (), None)
    topic.fetches.release()
    await delivered(subscription)
    assert places(cnx) == positions


@pytest.mark.parametrize("kind", INDIVIDUALLY)
async def test_released_messages_are_fetched_again_in_order(topic, kind) -> None:
    positions, subscription, consumer, cnx = await all_received(topic, kind, 120)
    subscription.redeliver(consumer, ids(*positions[10:]), None)
    subscription.flow(consumer, 200)
    await delivered(subscription)
    assert places(cnx) == positions[10:]
    assert {one.redelivery_count for one in cnx.messages} == {1}


@pytest.mark.parametrize("kind", INDIVIDUALLY)
async def test_fetched_messages_are_delivered_even_when_permits_have_grown_since(
    topic, kind
) -> None:
    positions, subscription, consumer, cnx = await all_received(topic, kind, READ_ENTRIES)
    begun = topic.fetches.begun
    subscription.redeliver(consumer, ids(*positions), None)
    subscription.flow(consumer, 5)
    topic.fetches.hold()
    await settle()
    subscription.flow(consumer, 5)
    topic.fetches.release()
    await asyncio.wait([subscription.dispatcher._fetching])
    topic.fetches.hold()
    await settle()
    assert places(cnx) == positions[:5]
    topic.fetches.release()
    await delivered(subscription)
    assert places(cnx) == positions[:10]
    assert topic.fetches.begun == begun + 2


@pytest.mark.parametrize("kind", INDIVIDUALLY)
async def test_messages_released_during_a_fetch_precede_later_messages_in_flight(
    topic: Stored, kind: pb.CommandSubscribe.SubType.ValueType
) -> None:
    positions, subscription, consumer, cnx = await all_received(topic, kind, 20, key="k")
    subscription.redeliver(consumer, ids(*positions[5:10]), None)
    subscription.flow(consumer, 20)
    topic.fetches.hold()
    await settle()
    subscription.redeliver(consumer, ids(*positions[:5]), None)
    topic.fetches.release()
    await delivered(subscription)
    assert places(cnx)[:10] == positions[:10]


@pytest.mark.parametrize("kind", INDIVIDUALLY)
async def test_messages_acknowledged_while_fetched_again_are_not_redelivered(
    topic: Stored, kind: pb.CommandSubscribe.SubType.ValueType
) -> None:
    positions, subscription, consumer, cnx = await all_received(topic, kind, 6)
    subscription.redeliver(consumer, ids(*positions), None)
    subscription.flow(consumer, 20)
    topic.fetches.hold()
    await settle()
    subscription.acknowledge(consumer, ids(positions[0], positions[3], positions[5]))
    topic.fetches.release()
    await delivered(subscription)
    assert places(cnx) == [positions[at] for at in (1, 2, 4)]


@pytest.mark.parametrize("kind", INDIVIDUALLY)
async def test_a_fetch_of_released_messages_is_bounded_by_the_bytes_of_a_read(
    topic: Stored, kind: pb.CommandSubscribe.SubType.ValueType, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = await topic.stored(20)
    subscription, consumer, cnx = await consuming(topic, kind)
    await delivered(subscription)
    cnx.take_entries()
    mean_bytes = topic.ledger.size_bytes // 20
    monkeypatch.setattr(dispatching, "FETCH_BYTES", 6 * mean_bytes)
    before = topic.fetches.begun
    subscription.redeliver(consumer, ids(*positions), None)
    await delivered(subscription)
    assert len(cnx.take_entries()) == 20
    assert topic.fetches.begun - before == 4


@pytest.mark.parametrize("kind", INDIVIDUALLY)
async def test_a_failed_fetch_of_released_messages_is_retried_after_a_second(
    topic: Stored, kind: pb.CommandSubscribe.SubType.ValueType, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions, subscription, consumer, cnx = await all_received(topic, kind, 3)

    async def fails(_: Sequence[Position]) -> list[Entry]:
        raise MessageStoreError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(topic.ledger, "fetch_each", fails)
        subscription.redeliver(consumer, ids(*positions), None)
        subscription.flow(consumer, 3)
        await delivered(subscription)
    assert cnx.entries == []
    topic.clock.advance(READ_AGAIN_SECONDS)
    await delivered(subscription)
    assert places(cnx) == positions


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damaged", [(0,), (3, 4), (8, 9), range(10)])
async def test_with_damage_skipped_delivery_continues_behind_damaged_entries(
    tmp_path, kind, damaged
) -> None:
    async with opened_topic(tmp_path, skip_damaged=True) as topic:
        positions = await topic.stored(10)
        topic.damage(*(positions[number] for number in damaged))
        subscription, _, cnx = await consuming(topic, kind)
        await delivered(subscription)
        whole = [at for number, at in enumerate(positions) if number not in damaged]
        assert places(cnx) == whole
        more = await topic.stored(2)
        subscription.entries_added()
        await delivered(subscription)
        assert places(cnx) == whole + more
        assert topic.fetches.begun < 10


@pytest.mark.parametrize("kind", INDIVIDUALLY)
async def test_an_entry_damaged_since_its_delivery_is_not_redelivered(topic, kind) -> None:
    positions, subscription, consumer, cnx = await all_received(topic, kind, 6)
    topic.damage(positions[0], positions[4])
    subscription.redeliver(consumer, ids(*positions), None)
    subscription.flow(consumer, 20)
    await delivered(subscription)
    assert places(cnx) == [positions[at] for at in (1, 2, 3, 5)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_damaged_entry_stops_its_subscription_and_is_retried(topic, kind) -> None:
    positions = await topic.stored(6)
    topic.damage(positions[2])
    subscription, _, cnx = await consuming(topic, kind)
    await delivered(subscription)
    assert (places(cnx), topic.fetches.begun) == (positions[:2], 2)
    topic.clock.advance(READ_AGAIN_SECONDS)
    await delivered(subscription)
    assert (places(cnx), topic.fetches.begun) == (positions[:2], 3)


async def compacted_topic(store: MessageStore) -> StoredTopic:
    """Return a topic with five messages kept by compaction, and two newer messages."""
    topic = await StoredTopic.loaded(store)
    for number in range(10):
        topic.publish(b"%d" % number, key=str(number % 5))
    await topic.ledger.flushed()
    await topic.compact()
    for number in (10, 11):
        topic.publish(b"%d" % number, key="5")
    await topic.ledger.flushed()
    return topic


def reading(topic: StoredTopic, permits: int) -> tuple[Subscription, Consumer, RecordingClient]:
    """Read the compacted view from the first message."""
    subscription, client = topic.subscriptions.create("s", earliest=True), RecordingClient()
    options = ConsumerOptions(1, "c", EXCLUSIVE, read_compacted=True)
    consumer = subscription.add_consumer(client, options)
    subscription.flow(consumer, permits)
    return subscription, consumer, client


async def test_entries_skipped_during_a_fetch_of_compacted_entries_are_not_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, fetch = asyncio.Event(), CompactedEntries.fetch

    async def held(*args: Any) -> list[Entry]:
        entries = await fetch(*args)
        await may_end.wait()
        return entries

    monkeypatch.setattr(CompactedEntries, "fetch", held)
    async with opened(sqlite_store(tmp_path / "messages.db", recent_bytes=0)) as store:
        topic = await StoredTopic.loaded(store)
        topic.publish(b"value", key="k")
        topic.publish(b"", key="k")
        await topic.ledger.flushed()
        await topic.compact()
        topic.publish(b"later", key="k")
        await topic.ledger.flushed()
        subscription, _, client = reading(topic, 9)
        await settle()
        subscription.skip_through(topic.ledger.last_confirmed)
        may_end.set()
        await delivered(subscription)
        assert client.messages == []
        await topic.unload()


@pytest.mark.parametrize("ends", ["compacted anew", "forgotten"])
@pytest.mark.parametrize("kind", ["memory", "sqlite with nothing in memory"])
async def test_no_message_is_lost_when_compacted_entries_are_deleted_during_a_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, ends: str
) -> None:
    may_begin, fetch, held = asyncio.Event(), CompactedEntries.fetch, []

    async def first_held(*args: Any) -> list[Entry]:
        if not held:
            held.append(args)
            await may_begin.wait()
        return await fetch(*args)

    async with opened(message_store(kind, tmp_path, per_ledger=50)) as store:
        topic = await compacted_topic(store)
        monkeypatch.setattr(CompactedEntries, "fetch", first_held)
        subscription, _, client = reading(topic, 99)
        await settle()
        if ends == "forgotten":
            topic.subscriptions.get(COMPACTION).delete()
            await topic.compaction._deletion
        else:
            await topic.compact()
        assert held
        may_begin.set()
        await delivered(subscription)
        left = {"compacted anew": b"567891", "forgotten": b"012345678901"}[ends]
        assert b"".join(data[-1:] for data in client.messages) == left
        await topic.unload()


@pytest.mark.parametrize("turns", [0, 1, 20])
async def test_compacted_entries_are_fetched_and_fetched_again_for_a_redelivery(
    tmp_path: Path, turns: int
) -> None:
    async with opened(sqlite_store(tmp_path / "messages.db", recent_bytes=0)) as store:
        topic = await compacted_topic(store)
        subscription, consumer, client = reading(topic, 2)
        await delivered(subscription)
        subscription.flow(consumer, 1)
        await delivered(subscription)
        assert [data[-1:] for data in client.messages] == [b"5", b"6", b"7"]
        client.messages.clear()
        subscription.flow(consumer, 20)
        subscription.dispatcher.run()
        for _ in range(turns):
            await asyncio.sleep(0)
        client.messages.clear()
        subscription.redeliver(consumer, (), None)
        await delivered(subscription)
        left = [b"5", b"6", b"7", b"8", b"9", b"0", b"1"]
        assert [data[-1:] for data in client.messages] == left
        await topic.unload()
