"""Topics are loaded by their first client, closed, deleted and reloaded."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.bundles import ALL_HASHES
from broker.configuration.config import BrokerConfig
from broker.errors import RefusedError
from broker.messages.compaction.compactor import compacted_name
from broker.messages.errors import MessageStoreError
from broker.messages.loading.loaded_topics import CLOSED_AT_ONCE, LoadedTopics, TopicParts
from broker.messages.loading.topic_deletion import TopicDeletion
from broker.messages.metadata import MessageDigest
from broker.messages.position import Position
from broker.messages.stores.managed_ledger import ManagedLedger
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.topic import NonPersistentTopic, PersistentTopic
from broker.ownership.ownership import Bundle
from broker.policies.effective import DEFAULTS, InactiveTopics, Rate
from broker.stores.changes import StoreError
from broker.stores.memory import MemoryStore
from broker.topics.rules import TopicRules
from broker.topics.service import TopicService
from proto.names import NamespaceName, TopicName
from server.connection.request_errors import RequestError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.support.messages.producing import ProducingConnection, SlowLedger, add, publish

NAMESPACE = NamespaceName("public", "default")
NAME = TopicName.parse("t")
FOREIGN = TopicName.parse("foreign")
"""A topic of a bundle not owned by this broker."""
Type = pb.BaseCommand


class HeldStore(MemoryMessageStore):
    """A store whose ledgers open when a test permits.

    Attributes:
        may_open: Set to let ledgers open.
        opened: Number of requested ledgers.
        error: Error of every open; None for success.
    """

    def __init__(self) -> None:
        super().__init__()
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.opened = 0
        self.error: MessageStoreError | None = None

    async def flushed(self) -> None:
        if self.error is not None:
            raise self.error

    async def open_ledger(self, name: str) -> ManagedLedger:
        self.opened += 1
        await self.may_open.wait()
        return await super().open_ledger(name)


class Loaded:
    def __init__(self, *, alone: bool = True, **keys: str) -> None:
        self.names, self.store, self.clock = MemoryStore(), HeldStore(), ManualClock()
        service = self.service = TopicService(self.names, lambda _: TopicRules())
        self.policies = DEFAULTS
        self.topics = LoadedTopics(
            TopicParts(
                config=BrokerConfig.from_properties(keys),
                clock=self.clock,
                metadata=self.names,
                topics=service,
                topic_rules=lambda _: TopicRules(),
                policies=SimpleNamespace(of=lambda _: self.policies),
                ownership=SimpleNamespace(owns=lambda name: name != FOREIGN, alone=alone),
                address=lambda: "here:8080",
            ),
            self.store,
        )
        self.deletion = TopicDeletion(self.topics, service, self.store)

    async def topic(self) -> PersistentTopic:
        await self.names.create_namespace(NAMESPACE)
        topic = await self.topics.get(NAME)
        assert isinstance(topic, PersistentTopic)
        return topic

    async def emptied(self) -> None:
        async with self.deletion.emptied([NAMESPACE]):
            pass

    def connection(self) -> ProducingConnection:
        return ProducingConnection(self.clock)

    async def produced(
        self, messages: int = 0, **metadata: object
    ) -> tuple[PersistentTopic, ProducingConnection]:
        """Return a topic with a producer that has published messages, and the connection."""
        topic, cnx = await self.topic(), self.connection()
        add(topic, cnx.producer())
        cnx.take()
        for number in range(messages):
            publish(topic, cnx.producers[1], number, **metadata)
        return topic, cnx

    async def held(self) -> None:
        """Hold all loads of topics in a namespace without topics."""
        await self.names.create_namespace(NAMESPACE)
        self.store.may_open.clear()


async def no_room(*_: object) -> None:
    raise MessageStoreError("there is no room")


@pytest.fixture
async def loaded() -> Loaded:
    return Loaded()


async def test_simultaneous_requests_for_a_topic_share_its_load_even_if_the_first_is_cancelled(
    loaded: Loaded,
) -> None:
    await loaded.held()
    first, second = [await started(loaded.topics.get(NAME)) for _ in range(2)]
    first.cancel()
    third = await started(loaded.topics.get(NAME))
    assert loaded.store.opened == 1
    loaded.store.may_open.set()
    topic = await second
    assert topic is await third is loaded.topics.loaded(NAME)
    assert list(loaded.topics.within(NAMESPACE)) == [topic]
    assert (loaded.store.opened, loaded.topics.load_times.count) == (1, 1)


async def test_simultaneous_topic_loads_are_bounded_by_the_key() -> None:
    loaded = Loaded(maxConcurrentTopicLoadRequest="2")
    await loaded.held()
    names = [TopicName.parse(f"t{number}") for number in range(4)]
    waiting = [await started(loaded.topics.get(name)) for name in names]
    assert loaded.store.opened == 2
    loaded.store.may_open.set()
    await asyncio.gather(*waiting)
    assert len(loaded.topics) == 4


async def test_a_load_bound_changed_at_run_time_applies_to_the_next_loads() -> None:
    loaded = Loaded(maxConcurrentTopicLoadRequest="1")
    await loaded.held()
    first = await started(loaded.topics.get(TopicName.parse("t0")))
    keys = {"maxConcurrentTopicLoadRequest": "3"}
    loaded.topics._parts.config.become(BrokerConfig.from_properties(keys))
    names = [TopicName.parse(f"t{number}") for number in range(1, 5)]
    waiting = [first, *[await started(loaded.topics.get(name)) for name in names]]
    assert loaded.store.opened == 1 + 3
    loaded.store.may_open.set()
    await asyncio.gather(*waiting)


async def test_a_drain_sends_receipts_before_producers_are_closed(loaded, monkeypatch) -> None:
    topic, cnx = await loaded.topic(), loaded.connection()
    ledger = topic.ledger
    ledger.__class__ = SlowLedger
    assert isinstance(ledger, SlowLedger)
    add(topic, cnx.producer())
    cnx.take()
    publish(topic, cnx.producers[1])

    async def flushed() -> None:
        if ledger.listener is not None:
            ledger.confirm(ledger.last_confirmed)

    monkeypatch.setattr(ledger, "flushed", flushed)
    await loaded.topics.flushed()
    await loaded.topics.close()
    assert [one.type for one in cnx.take()] == [Type.SEND_RECEIPT, Type.CLOSE_PRODUCER]
    assert len(loaded.topics) == 0


async def test_closing_covers_more_topics_than_are_closed_simultaneously(loaded: Loaded) -> None:
    await loaded.names.create_namespace(NAMESPACE)
    names = [TopicName.parse(f"t{number}") for number in range(2 * CLOSED_AT_ONCE + 1)]
    topics = [await loaded.topics.get(name) for name in names]
    await loaded.topics.close()
    assert len(loaded.topics) == 0
    assert all(topic.closing for topic in topics)


async def test_an_unload_on_a_full_disk_stores_acknowledgements(loaded, monkeypatch) -> None:
    topic = await loaded.topic()
    subscription = topic.subscriptions.create("s", earliest=True)
    topic.ledger.append(b"m", MessageDigest(1, 1, 0))
    last = topic.ledger.last_confirmed
    subscription.cursor.acknowledge(last)
    ledger = topic.ledger
    monkeypatch.setattr(ledger, "flushed", no_room)
    await loaded.topics.unload(NAME)
    assert ledger.cursors["s"].mark_delete == last


@pytest.mark.parametrize("how", ["shutdown", "lost bundle"])
async def test_a_fault_in_a_topic_does_not_keep_others_open_or_its_publishes_pending(
    how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = Loaded(alone=False)
    topic, cnx = await loaded.topic(), loaded.connection()
    other = await loaded.topics.get(TopicName.parse("other"))
    topic.ledger.__class__ = SlowLedger
    add(topic, cnx.producer())
    publish(topic, cnx.producers[1])

    async def is_faulty() -> None:
        raise ValueError("a fault of the compaction")

    monkeypatch.setattr(topic.compaction, "close", is_faulty)
    if how == "shutdown":
        await loaded.topics.close()
    else:
        await loaded.topics.let_go(lambda _: True)
    assert len(loaded.topics) == 0
    assert other.closing
    assert cnx.publishes.size_bytes == 0
    assert "persistent://public/default/t was not unloaded as it should" in caplog.text


async def test_an_unloaded_topic_closes_its_producers_and_keeps_stored_messages(loaded) -> None:
    topic, cnx = await loaded.produced(1)
    cnx.take()
    assert await loaded.topics.unload(NAME)
    assert [one.type for one in cnx.take()] == [Type.CLOSE_PRODUCER]
    assert loaded.topics.loaded(NAME) is None
    assert not await loaded.topics.unload(NAME)
    again = await loaded.topic()
    assert again is not topic
    assert again.statistics.messages == 0
    assert again.ledger.size_bytes > 0
    await settle()


async def test_a_failed_ledger_unloads_its_topic_and_the_next_client_reloads_the_topic() -> None:
    loaded = Loaded()
    topic, cnx = await loaded.produced()
    loaded.store.close_ledger(topic.full_name)
    publish(topic, cnx.producers[1])
    again = await loaded.topic()
    assert again is not topic
    assert cnx.producers == {}
    await settle()
    assert loaded.topics.loaded(NAME) is again


async def test_a_topic_in_use_is_deleted_only_by_force(loaded: Loaded) -> None:
    _, cnx = await loaded.produced()
    with pytest.raises(RefusedError) as raised:
        await loaded.deletion.delete(NAME)
    assert raised.value.reason == (
        "Topic has 1 client connected Including 0 consumers, 1 producers, and 0 replicators."
    )
    await loaded.deletion.delete(NAME, force=True)
    assert [one.type for one in cnx.take()] == [Type.CLOSE_PRODUCER]
    snapshot = await loaded.names.snapshot(NAMESPACE)
    assert snapshot is not None
    assert not snapshot.exists(str(NAME))
    assert not loaded.store.holds(str(NAME))
    assert loaded.topics.loaded(NAME) is None


async def test_deleting_a_missing_topic_is_refused(loaded: Loaded) -> None:
    await loaded.topic()
    with pytest.raises(RefusedError):
        await loaded.deletion.delete(TopicName.parse("other"))
    assert loaded.topics.loaded(NAME) is not None


async def test_an_unloaded_topic_is_deleted_with_its_messages(loaded: Loaded) -> None:
    await loaded.topic()
    await loaded.topics.unload(NAME)
    await loaded.deletion.delete(NAME)
    assert not loaded.store.holds(str(NAME))


async def test_a_topic_is_not_deleted_while_the_store_is_full(loaded: Loaded) -> None:
    await loaded.topic()
    loaded.store.error = MessageStoreError("there is no room")
    with pytest.raises(MessageStoreError, match="there is no room"):
        await loaded.deletion.delete(NAME)
    topic = loaded.topics.loaded(NAME)
    assert topic is not None
    assert not topic.closing
    loaded.store.error = None
    await loaded.deletion.delete(NAME)
    assert not loaded.store.holds(str(NAME))


async def test_terminating_a_topic_fails_when_its_end_cannot_be_stored(loaded, monkeypatch) -> None:
    topic = await loaded.topic()
    monkeypatch.setattr(topic.ledger, "flushed", no_room)
    with pytest.raises(MessageStoreError, match="there is no room"):
        await loaded.topics.terminate(NAME)


async def test_terminating_a_topic_returns_its_last_position(loaded: Loaded) -> None:
    topic, cnx = await loaded.topic(), loaded.connection()
    empty = topic.ledger.last_confirmed
    assert empty.entry_id == -1
    add(topic, cnx.producer())
    publish(topic, cnx.producers[1])
    last = await loaded.topics.terminate(NAME)
    assert last == Position(empty.ledger_id, 0)
    assert await loaded.topics.terminate(NAME) == last
    await settle()


async def test_terminating_a_missing_topic_is_refused(loaded: Loaded) -> None:
    await loaded.names.create_namespace(NAMESPACE)
    with pytest.raises(RequestError):
        await loaded.topics.terminate(NAME)


async def test_terminating_a_non_persistent_topic_is_refused(loaded: Loaded) -> None:
    await loaded.names.create_namespace(NAMESPACE)
    name = TopicName.parse("non-persistent://public/default/n")
    assert isinstance(await loaded.topics.get(name), NonPersistentTopic)
    with pytest.raises(RefusedError):
        await loaded.topics.terminate(name)


async def test_a_topic_load_is_refused_when_its_namespace_is_deleted(loaded: Loaded) -> None:
    await loaded.names.create_namespace(NAMESPACE)
    await loaded.service.create(NAME, {})
    loaded.store.may_open.clear()
    loading = await started(loaded.topics.get(NAME))
    emptied = await started(loaded.emptied())
    assert not emptied.done()
    loaded.store.may_open.set()
    with pytest.raises(RequestError, match="temporarily unavailable"):
        await loading
    await emptied
    assert len(loaded.topics) == 0
    assert not loaded.store.holds(str(NAME))


async def test_a_topic_whose_load_was_cancelled_is_deleted_after_its_load(loaded: Loaded) -> None:
    await loaded.held()
    loading = await started(loaded.topics.get(NAME))
    loading.cancel()
    deleting = await started(loaded.deletion.delete(NAME))
    assert not deleting.done()
    loaded.store.may_open.set()
    await deleting
    assert len(loaded.topics) == 0
    assert not loaded.store.names()


async def test_a_topic_joined_by_a_producer_during_its_deletion_is_not_deleted(
    loaded, monkeypatch
) -> None:
    topic, cnx = await loaded.topic(), loaded.connection()

    async def joins() -> None:
        add(topic, cnx.producer())

    monkeypatch.setattr(loaded.store, "flushed", joins)
    with pytest.raises(RefusedError, match="1 producers"):
        await loaded.deletion.delete(NAME)
    assert loaded.topics.loaded(NAME) is topic
    assert loaded.store.holds(str(NAME))


async def test_no_partition_is_loaded_while_its_topic_is_deleted(loaded: Loaded) -> None:
    await loaded.names.create_namespace(NAMESPACE)
    await loaded.service.create_partitioned(NAME, 2, {})
    partition = TopicName.parse("t-partition-0")
    async with loaded.topics.shut(NAME), loaded.topics.shut(NAME):
        with pytest.raises(RequestError, match="temporarily unavailable"):
            await loaded.topics.get(partition)
    await loaded.topics.get(partition)


async def test_a_topic_created_during_a_namespace_deletion_is_not_tracked(loaded: Loaded) -> None:
    loaded.policies = replace(DEFAULTS, inactive_topics=InactiveTopics(delete=True))
    await loaded.topic()
    async with loaded.deletion.emptied([NAMESPACE]):
        await loaded.service.create(TopicName.parse("late"), {})
    assert len(loaded.topics.made) == 0


async def test_an_unreadable_topic_is_deleted_with_its_compacted_entries(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    await compacted(loaded)
    await loaded.topics.unload(NAME)

    async def damaged(_: str) -> ManagedLedger:
        raise MessageStoreError("it is damaged")

    monkeypatch.setattr(loaded.store, "open_ledger", damaged)
    await loaded.deletion.delete(NAME)
    assert not loaded.store.names()


async def test_no_topic_of_a_namespace_is_loaded_during_its_deletion(loaded: Loaded) -> None:
    topic = await loaded.topic()
    async with loaded.deletion.emptied([NAMESPACE]):
        assert topic.closing
        with pytest.raises(RequestError, match="temporarily unavailable"):
            await loaded.topics.get(NAME)
        assert not loaded.store.holds(str(NAME))
    assert await loaded.topics.get(NAME) is not topic


async def test_a_namespace_whose_messages_cannot_be_deleted_can_be_emptied_later(
    loaded: Loaded, monkeypatch
) -> None:
    await loaded.topic()
    with monkeypatch.context() as patch:
        patch.setattr(loaded.store, "delete_ledger", no_room)
        with pytest.raises(MessageStoreError, match="no room"):
            await loaded.emptied()
    await loaded.topic()
    await loaded.emptied()
    assert not loaded.store.names()


async def test_messages_are_deleted_even_when_the_topic_name_cannot_be(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    await loaded.produced(1)

    async def fails(*_: object) -> int:
        raise StoreError("the database is away")

    monkeypatch.setattr(loaded.names, "apply", fails)
    with pytest.raises(StoreError, match="is away"):
        await loaded.deletion.delete(NAME, force=True)
    again = await loaded.topic()
    assert again.ledger.size_bytes == 0


async def test_a_broker_tracks_created_topics_only_of_owned_bundles() -> None:
    loaded = Loaded(alone=False)
    loaded.policies = replace(DEFAULTS, inactive_topics=InactiveTopics(delete=True))
    await loaded.names.create_namespace(NAMESPACE)
    await loaded.service.create(NAME, {})
    await loaded.service.create(FOREIGN, {})
    assert [name for name, _ in loaded.topics.made.unused()] == [NAME]
    await loaded.topics.let_go(lambda _: False)
    assert len(loaded.topics.made) == 0


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_connection_paused_by_a_topic_rate_resumes_when_the_topic_is_closed(
    *, deleted: bool
) -> None:
    loaded = Loaded()
    loaded.policies = replace(DEFAULTS, publish_rate=Rate(1))
    _, cnx = await loaded.produced(100)
    assert not cnx.gate.open
    await (loaded.deletion.delete(NAME, force=True) if deleted else loaded.topics.unload(NAME))
    assert cnx.gate.open


async def compacted(loaded: Loaded) -> str:
    """Compact a topic with messages; return the compacted ledger."""
    topic, _ = await loaded.produced(1, partition_key="k")
    topic.compaction.start()
    await topic.compaction.finished()
    left = topic.compaction.compacted
    assert left is not None
    return left.ledger.name


async def test_a_moved_bundle_is_forgotten_with_its_compacted_entries() -> None:
    loaded = Loaded(alone=False)
    left = await compacted(loaded)
    for name in (str(FOREIGN), compacted_name(str(FOREIGN), 70), compacted_name(str(FOREIGN), 71)):
        await loaded.store.open_ledger(name)
    elsewhere = "persistent://public/another/t"
    await loaded.store.open_ledger(elsewhere)
    await loaded.deletion.forget(Bundle(NAMESPACE, ALL_HASHES))
    assert set(loaded.store.names()) == {str(NAME), left, elsewhere}  # NAME is served


async def test_forgetting_a_bundle_is_refused_when_a_ledger_cannot_be_deleted(monkeypatch) -> None:
    loaded = Loaded(alone=False)
    await loaded.store.open_ledger(str(FOREIGN))
    monkeypatch.setattr(loaded.store, "delete_ledger", no_room)
    with pytest.raises(RequestError, match="no room"):
        await loaded.deletion.forget(Bundle(NAMESPACE, ALL_HASHES))


@pytest.mark.parametrize("how", ["namespace", "namespace, unloaded", "topic", "topic, unloaded"])
async def test_compacted_entries_are_deleted_with_their_topic_or_namespace(
    loaded: Loaded, how: str
) -> None:
    await compacted(loaded)
    if "unloaded" in how:
        await loaded.topics.unload(NAME)
    if "namespace" in how:
        await loaded.emptied()
    else:
        await loaded.deletion.delete(NAME, force=True)
    assert not loaded.store.names()
    await settle()


async def test_changed_policies_apply_to_the_topics_of_their_scope(loaded: Loaded) -> None:
    await loaded.topic()
    parted = TopicName.parse("p")
    await loaded.service.create_partitioned(parted, 4, {})
    names = ("p-partition-3", "p-partition-0", "pp", "t", "non-persistent://public/default/p")
    topics = [await loaded.topics.get(TopicName.parse(name)) for name in names]
    loaded.policies = replace(DEFAULTS, publish_rate=Rate(1))
    loaded.topics.policies_changed(parted)
    assert [topic.rate.limits for topic in topics] == [True, True, False, False, False]
    loaded.topics.policies_changed(NamespaceName("public", "def"))
    assert [topic.rate.limits for topic in topics] == [True, True, False, False, False]
    loaded.topics.policies_changed(NAMESPACE)
    assert all(topic.rate.limits for topic in topics)
