"""Two brokers on one PostgreSQL: each sees the other's changes, even after its restart."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from broker.service import BrokerService
from broker.stores.changes import MAX_TOLD_NAMES, Change, StoreError, TopicChanges, TopicExistsError
from broker.stores.store import MetadataStore
from broker.topics.properties import TopicProperties
from broker.topics.rules import TopicRules
from broker.topics.service import TopicService
from proto.names import NamespaceName, TopicName
from tests.support.processes.cluster import broker_config, until
from tests.support.processes.postgresql import PostgresqlServer
from tests.support.stores.overtaken import before_change
from tests.support.stores.topic_stores import ALL, A, base, changes, names, topic

NEW = NamespaceName.parse("tenant/new")


@asynccontextmanager
async def two_brokers(url: str) -> AsyncIterator[tuple[MetadataStore, MetadataStore]]:
    """Two brokers' stores on one database."""
    config = broker_config({"metadataStoreUrl": url})
    async with BrokerService(config) as one, BrokerService(config) as other:
        yield one.store, other.store


async def connected(*stores: MetadataStore, reachable: bool = True) -> None:
    """Wait until stores know whether their database is reachable."""
    await until(lambda: all(store.connected is reachable for store in stores))


async def test_a_topic_created_on_a_broker_is_listed_by_the_other(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.apply(A, changes(topic("before")))
        assert await names(other) == [base("before")]
        feed = other.changes()
        version = await one.apply(A, changes(topic("new"), removed=(topic("before"),)))
        change = await anext(feed)
        assert change == Change(A, version, [topic("new")], [topic("before")])
        assert await names(other) == [base("new")]
        assert (await other.snapshot(A)).version == version


async def test_an_import_on_a_broker_removes_no_partitions_elsewhere(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.apply(A, changes(topic("t-partition-9"), t=10, u=1))
        await other.snapshot(A)
        feed = other.changes()
        await one.apply(A, replace(changes(topic("t-partition-1"), t=2, u=3), adds_only=True))
        await anext(feed)
        assert dict((await other.snapshot(A)).partitioned) == {base("t"): 10, base("u"): 3}


async def test_simultaneous_property_updates_of_both_brokers_are_kept(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.apply(A, TopicChanges([topic("p-partition-0")], partitioned={base("p"): 1}))
        name, grown = TopicName.parse(base("p")), TopicService(other, lambda _: TopicRules())

        async def meanwhile() -> None:
            await TopicProperties(other).update(name, {"b": "2"})
            await grown.grow(name, 2)

        before_change(one, 1, meanwhile)
        await TopicProperties(one).update(name, {"a": "1"})
        for local in ("p", "p-partition-0", "p-partition-1"):
            assert await other.properties(A, base(local)) == {"a": "1", "b": "2"}


async def test_both_brokers_report_all_changes_in_the_same_order(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as stores:
        for store in stores:
            await store.create_namespace(A)
            await store.snapshot(A)
        feeds = [store.changes() for store in stores]
        async with asyncio.TaskGroup() as group:
            for n in range(60):
                group.create_task(stores[n % 2].apply(A, changes(topic(f"t{n:02d}"))))
        told = [[await anext(feed) for _ in range(60)] for feed in feeds]
        assert told[0] == told[1]
        assert [change.version for change in told[0]] == list(range(1, 61))
        assert all(change.complete for change in told[0])
        listed = [await names(store, mode=ALL) for store in stores]
        assert listed[0] == listed[1] == [base(f"t{n:02d}") for n in range(60)]
        assert len({(await store.snapshot(A)).listing(ALL).hash for store in stores}) == 1


async def test_of_two_simultaneous_creations_of_a_topic_one_succeeds(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as stores:
        await stores[0].create_namespace(A)
        for number in range(20):
            name = f"t{number}"
            creation = replace(changes(topic(name)), absent=[base(name)])
            done = await asyncio.gather(
                *(store.apply(A, creation) for store in stores), return_exceptions=True
            )
            assert [one for one in done if isinstance(one, int)] == [number + 1]
            assert {type(one) for one in done} == {int, TopicExistsError}


async def test_a_large_change_is_reported_as_incomplete_with_no_names(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.apply(A, changes(topic("before")))
        await other.snapshot(A)
        feed = other.changes()
        many = [topic(f"t{n:04d}") for n in range(MAX_TOLD_NAMES + 1)]
        version = await one.apply(A, changes(*many))
        assert await anext(feed) == Change(A, version, complete=False)
        assert len(await names(other)) == len(many) + 1


async def test_creation_of_a_previously_requested_namespace_is_reported(postgresql_url) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        feed = other.changes()
        assert await other.snapshot(NEW) is None
        version = await one.apply(NEW, changes(topic("a", NEW)))
        assert await anext(feed) == Change(NEW, version, complete=False)
        assert await names(other, NEW) == [topic("a", NEW).decode()]


async def test_deletion_and_recreation_of_a_namespace_are_reported(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.apply(A, changes(topic("__change_events")))
        await other.snapshot(A)
        feed = other.changes()
        await one.delete_namespace(A)
        gone = await anext(feed)
        listed = await other.snapshot(A)
        version = await one.apply(A, changes(topic("again")))
        assert (gone.version, gone.complete) == (2, False)
        assert listed is None
        made = await anext(feed)
        assert (made.version, made.complete) == (version, False)
        assert await names(other) == [base("again")]


async def test_changes_missing_in_the_log_are_reported_as_incomplete(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.apply(A, changes(topic("a")))
        await other.snapshot(A)
        feed = other.changes()
        other._namespaces._resyncs._resync = asyncio.Event().wait  # Notified, without polling.
        for name in "bcd":
            await one.apply(A, changes(topic(name)))
        async with one.use() as connection:
            await connection.execute("DELETE FROM floodgate.changes WHERE version = 3")
        async with other._namespaces._locks.of(A):
            await other._namespaces._resync_locked(A)
        assert await anext(feed) == Change(A, 4, complete=False)
        assert await names(other) == [base(name) for name in "abcd"]


async def test_a_configuration_change_is_reported_to_the_other_only(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        told, own = asyncio.Event(), asyncio.Event()
        other.on_configuration(told.set)
        one.on_configuration(own.set)
        await one.set_configuration("key", "value")
        await told.wait()
        assert await other.configuration() == {"key": "value"}
        assert not own.is_set()


async def test_both_brokers_resume_after_a_database_restart(postgresql, postgresql_url) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.apply(A, changes(topic("before")))
        await other.snapshot(A)
        feed = other.changes()
        await asyncio.to_thread(postgresql.stop)
        await connected(one, other, reachable=False)
        served = await names(other)
        with pytest.raises(StoreError, match="the connection is lost; reconnecting"):
            await one.apply(A, changes(topic("refused")))
        with pytest.raises(StoreError):
            await other.snapshot(NEW)
        await asyncio.to_thread(postgresql.start)
        await connected(one, other)
        version = await one.apply(A, changes(topic("after")))
        assert served == [base("before")]
        told = [await anext(feed) for _ in range(2)]
        assert Change(A, version, [topic("after")], []) in told
        # A restarted server may have lost commits: a new listing is due.
        assert sum(not change.complete for change in told) == 1
        assert await names(other) == [base("after"), base("before")]


async def test_changes_during_a_lost_connection_are_reported_as_one_change_per_namespace(
    postgresql: PostgresqlServer, postgresql_url: str
) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.apply(A, changes(topic("before")))
        await other.snapshot(A)
        await other.snapshot(NEW)
        feed = other.changes()
        again = asyncio.Event()
        connect, other._listener._connect = other._listener._connect, None

        async def later() -> object:
            await again.wait()
            return await connect()

        other._listener._connect = later
        other._listener._connection.terminate()
        await connected(other, reachable=False)
        for name in "abc":
            version = await one.apply(A, changes(topic(name)))
        await one.apply(NEW, changes(topic("x", NEW)))
        again.set()
        told = [await anext(feed) for _ in range(2)]
        assert sorted(told, key=str) == [
            Change(A, version, complete=False),
            Change(NEW, 1, complete=False),
        ]
        assert await names(other) == [base(name) for name in ("a", "b", "before", "c")]
        last = await one.apply(A, changes(topic("d")))
        assert await anext(feed) == Change(A, last, [topic("d")], [])


async def test_a_topic_lost_by_the_database_is_no_longer_listed(
    postgresql: PostgresqlServer, postgresql_url: str
) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.apply(A, changes(topic("kept")))
        await one.apply(A, changes(topic("lost")))
        assert await names(other) == [base("kept"), base("lost")]
        feed, again = other.changes(), asyncio.Event()
        for store in (one, other):
            store._listener._connect = _once(again, store._listener._connect)
        await asyncio.to_thread(postgresql.stop)
        await connected(one, other, reachable=False)
        await asyncio.to_thread(postgresql.start)
        # As after a crash without its last commit, and then another change in its place
        async with one._connections.use() as connection:
            await connection.execute("DELETE FROM floodgate.topics WHERE name = $1", topic("lost"))
            await connection.execute(
                "INSERT INTO floodgate.topics SELECT id, $1 FROM floodgate.namespaces "
                "WHERE name = $2",
                topic("other"),
                str(A),
            )
        again.set()
        await connected(one, other)
        assert not (await anext(feed)).complete
        assert [await names(store) for store in (one, other)] == [[base("kept"), base("other")]] * 2


def _once(again: asyncio.Event, connect: Callable[[], Awaitable[object]]) -> object:
    async def later() -> object:
        await again.wait()
        return await connect()

    return later
