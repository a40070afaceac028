"""The store in a shared database: behaviour beyond the conformance tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

import asyncpg
import pytest

from broker.stores.changes import MAX_TOLD_NAMES, Change, StoreError, TopicChanges
from broker.stores.open_store import store_for_url
from broker.stores.postgresql import reading as postgresql_reading
from broker.stores.postgresql import writing as postgresql_writing
from broker.stores.postgresql.reading import _SELECT
from broker.stores.postgresql.schema import MAX_ROW_BYTES
from broker.stores.postgresql.store import PostgresqlStore
from proto.names import NamespaceName
from tests.support.stores.topic_stores import (
    PERSISTENT,
    A,
    B,
    base,
    changes,
    names,
    opened,
    postgresql,
    told,
    topic,
    with_properties,
)

UNREACHABLE = "postgresql://user:s3cret@127.0.0.1:1/d?password=s3cret"
LONG = "x" * (MAX_ROW_BYTES - len(topic("")))

MANY_NAMED = {
    "existing": postgresql_writing._EXISTING,
    "counts": postgresql_writing._COUNTS,
    "properties": postgresql_writing._PROPERTIES,
    "delete_topics": postgresql_writing._DELETE_TOPICS,
    "delete_properties": postgresql_writing._DELETE_PROPERTIES,
    "delete_counts": postgresql_writing._DELETE_COUNTS,
    "some_partitioned": postgresql_reading._SOME_PARTITIONED,
    "some_topics": postgresql_reading._SOME_TOPICS,
}
"""Statements that take thousands of names of a namespace."""


@asynccontextmanager
async def connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    made = await asyncpg.connect(url)
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize("url", ["postgresql://h/d", "postgres:///d?host=/tmp"])
def test_a_postgresql_url_selects_the_postgresql_store(url: str) -> None:
    store = store_for_url(url, 0)
    assert isinstance(store, PostgresqlStore)
    assert url in repr(store)


async def test_an_unreachable_database_is_reported_without_the_password() -> None:
    store = PostgresqlStore(UNREACHABLE, 0)
    with pytest.raises(StoreError) as caught:
        await store.open()
    assert "postgresql://user:***@127.0.0.1:1/d?password=*** failed: " in str(caught.value)
    assert "s3cret" not in f"{caught.value} {store!r}"
    await store.close()


async def test_brokers_starting_simultaneously_create_the_tables_once(postgresql_url: str) -> None:
    stores = [postgresql(postgresql_url) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    assert await stores[0].apply(A, changes(topic("a"))) == 1
    for store in stores:
        await store.close()


async def test_tables_of_another_schema_version_are_refused(postgresql_url: str) -> None:
    async with opened(postgresql(postgresql_url)):
        pass
    async with connection(postgresql_url) as other:
        await other.execute("UPDATE floodgate.marks SET value = 2 WHERE name = 'schema'")
    store = postgresql(postgresql_url)
    with pytest.raises(StoreError, match="schema floodgate has version 2, this broker knows 1"):
        await store.open()
    await store.close()


async def test_a_closed_store_refuses_changes(postgresql_url: str) -> None:
    async with opened(postgresql(postgresql_url)) as store:
        pass
    with pytest.raises(StoreError):
        await store.apply(A, changes(topic("a")))


async def test_the_change_log_keeps_only_the_newest_changes(
    postgresql_url: str, monkeypatch
) -> None:
    monkeypatch.setattr(postgresql_writing, "MAX_LOGGED_CHANGES", 3)
    monkeypatch.setattr(postgresql_writing, "PRUNED_EVERY", 5)
    async with opened(postgresql(postgresql_url)) as store:
        for number in range(11):
            await store.apply(A, changes(topic(f"t{number}")))
        async with connection(postgresql_url) as other:
            rows = await other.fetch("SELECT version FROM floodgate.changes ORDER BY version")
    assert [row[0] for row in rows] == [8, 9, 10, 11]


async def test_the_longest_name_that_an_index_holds_is_stored_and_published(
    postgresql_url: str,
) -> None:
    async with opened(postgresql(postgresql_url)) as one, opened(postgresql(postgresql_url)) as two:
        await one.create_namespace(A)
        await two.snapshot(A)
        feed = two.changes()
        long = [topic(f"{number}{LONG[1:]}") for number in range(5)]
        await one.apply(A, replace(changes(*long), partitioned={long[0].decode(): 1}))
        (change,) = await told(feed, 1)
        assert list(change.added) == long
        assert await names(two) == [name.decode() for name in long]


@pytest.mark.parametrize(
    "content",
    [
        changes(topic("a"), topic(f"{LONG}x")),
        changes(topic("a"), **{f"{LONG}x": 1}),
        with_properties({topic("a"): {"k": "v" * MAX_ROW_BYTES}}),
        with_properties(
            {topic(f"t{n}"): {"k": "v" * (MAX_ROW_BYTES * (n == 9))} for n in range(10)}
        ),
    ],
)
async def test_a_row_too_large_for_an_index_is_refused_without_any_change(
    postgresql_url, content
) -> None:
    async with opened(postgresql(postgresql_url)) as store:
        await store.apply(A, changes(topic("before")))
        with pytest.raises(StoreError, match=r"may have 2,600 bytes in a PostgreSQL store"):
            await store.apply(A, content)
        assert await names(store) == [base("before")]
        assert await store.apply(A, changes(topic("after"))) == 2


async def test_a_committed_change_is_published_even_if_the_log_cannot_be_read(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgresql(postgresql_url)) as one, opened(postgresql(postgresql_url)) as two:
        await one.apply(A, changes(topic("a")))
        await two.snapshot(A)
        feed = two.changes()

        async def fails(_: object) -> None:
            raise StoreError("out of reach")

        monkeypatch.setattr(two._namespaces._resyncs, "request", lambda _: None)
        monkeypatch.setattr(two._namespaces, "_resync_locked", fails)
        await one.apply(A, changes(topic("b")))
        version = await two.apply(A, changes(topic("c")))
        assert await told(feed, 1) == [Change(A, version, complete=False)]
        assert await names(two) == [base("a"), base("b"), base("c")]


async def test_a_cached_snapshot_is_not_used_for_a_recreated_namespace(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgresql(postgresql_url)) as one, opened(postgresql(postgresql_url)) as two:
        await one.apply(A, changes(topic("__change_events")))
        assert (await two.snapshot(A)).system
        monkeypatch.setattr(two._namespaces._resyncs, "request", lambda _: None)
        await one.delete_namespace(A)
        version = await two.apply(A, changes(topic("new")))
        snapshot = await two.snapshot(A)
        assert (version, snapshot.version) == (3, 3)
        assert not snapshot.system
        assert await names(two) == [base("new")]


@pytest.mark.parametrize("fresh", [True, False])
async def test_a_large_change_is_written_in_several_statements_as_a_single_change(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    monkeypatch.setattr(postgresql_writing, "ROWS_PER_STATEMENT", 300)
    async with opened(postgresql(postgresql_url)) as store:
        if not fresh:
            await store.apply(A, changes(topic("t0005"), topic("gone")))
        many = [topic(f"t{number:04d}") for number in range(MAX_TOLD_NAMES)]
        described = with_properties({name: {"k": name[-1:].decode()} for name in many})
        twice = [*many, *many[:10]]
        await store.apply(A, replace(described, added=twice, removed=[topic("gone"), many[-1]]))
        assert await names(store) == [name.decode() for name in many[:-1]]
        assert len(await store.select(A, PERSISTENT, {"k": "9"})) == MAX_TOLD_NAMES // 10 - 1


async def test_a_selection_starts_from_the_rarest_property(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgresql(postgresql_url)) as store:
        rows = {topic(f"t{n:04d}"): {"all": "x", "few": str(n // 4)} for n in range(3_000)}
        await store.apply(A, with_properties(rows))
        for counted in ((1_000,), (2, 1_000)):
            monkeypatch.setattr(postgresql_reading, "COUNTED_TOPICS", counted)
            for wanted in ({"all": "x", "few": "7"}, {"few": "7", "all": "x"}):
                statements = await seen_by(store, store.select(A, PERSISTENT, wanted))
                (values,) = [values for query, values in statements if query == _SELECT]
                assert values[1:3] == (b"few", b"7")


async def test_a_selection_by_frequent_properties_only_is_correct(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_reading, "COUNTED_TOPICS", (2, 3))
    async with opened(postgresql(postgresql_url)) as store:
        rows = {topic(f"t{n:02d}"): {"two": str(n % 2), "three": str(n % 3)} for n in range(30)}
        await store.apply(A, with_properties(rows))
        found = (
            await store.select(A, PERSISTENT, {"two": "0", "three": "0", "x": "1"}),
            [*(await store.select(A, PERSISTENT, {"two": "0", "three": "0"})).names()],
        )
        assert len(found[0]) == 0
        assert found[1] == [base(f"t{n:02d}") for n in range(0, 30, 6)]


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_selection_uses_indexes_with_and_without_table_statistics(
    postgresql_url: str, analyzed: bool
) -> None:
    async with opened(postgresql(postgresql_url)) as store:
        rows = {topic(f"t{n:04d}"): {"all": "x", "few": str(n // 4)} for n in range(20_000)}
        await store.apply(A, with_properties(rows))
        if analyzed:
            async with connection(postgresql_url) as other:
                await other.execute("ANALYZE floodgate.properties")
        wanted = {"few": "7", "all": "x"}
        statements = await seen_by(store, store.select(A, PERSISTENT, wanted))
        async with connection(postgresql_url) as other:
            for query, values in statements:
                plan = "\n".join(row[0] for row in await other.fetch(f"EXPLAIN {query}", *values))
                assert "Seq Scan" not in plan, plan
                if query == _SELECT:
                    assert "using properties_by_value on properties p" in plan, plan
                    (looked_up,) = (line for line in plan.splitlines() if "= w.key)" in line)
                    by_value = "(value = w.value) AND (name = p.name)"
                    assert by_value in looked_up or "properties_pkey" in plan, plan
    assert len(statements) == 4


async def test_a_plan_prepared_on_an_empty_table_uses_no_sequential_scan(
    postgresql_url: str,
) -> None:
    # Statements from before the database had rows
    async with opened(postgresql(postgresql_url)) as store, store.use() as used:
        for table in ("topics", "partitioned", "properties"):
            await used.execute(f"VACUUM ANALYZE floodgate.{table}")
        for name, query in MANY_NAMED.items():
            await used.execute(f"PREPARE {name} (bigint, bytea[]) AS {query}")
            for _ in range(10):
                await used.execute(f"EXECUTE {name} (1, array['a', 'b']::bytea[])")
        row, numbers = "1, n::text::bytea", "FROM generate_series(1, 20000) AS n"
        for table, more in (("topics", ""), ("partitioned", ", 1"), ("properties", ", 'k', 'v'")):
            await used.execute(f"INSERT INTO floodgate.{table} SELECT {row}{more} {numbers}")
        for name in MANY_NAMED:
            plan = await used.fetch(f"EXPLAIN EXECUTE {name} (1, array['a', 'b']::bytea[])")
            lines = "\n".join(row[0] for row in plan)
            assert "Seq Scan" not in lines, lines
            assert "Filter" not in lines, lines


async def seen_by(
    store: PostgresqlStore, work: Coroutine[object, object, object]
) -> list[tuple[str, tuple[object, ...]]]:
    """Return the statements sent by ``work``, with their values."""
    async with store.use() as connection:
        recorded, use = Recorded(connection), store._connections.use
        store._connections.use = lambda: nullcontext(recorded)
        await work
        store._connections.use = use
    return recorded.statements


class Recorded:
    """A connection that records statements."""

    def __init__(self, connection: object) -> None:
        self._connection = connection
        self.statements: list[tuple[str, tuple[object, ...]]] = []

    def __getattr__(self, name: str) -> object:
        method = getattr(self._connection, name)
        return self._recording(method) if name in ("fetch", "fetchrow", "cursor") else method

    def _recording(self, method: Callable[..., object]) -> Callable[..., object]:
        def call(query: str, *values: object) -> object:
            self.statements.append((query, values))
            return method(query, *values)

        return call


async def test_a_name_too_large_for_an_index_refuses_all_changes_of_its_batch(
    postgresql_url: str,
) -> None:
    long = TopicChanges([topic(LONG + "x")], adds_only=True)
    short = TopicChanges([topic("b", B)], adds_only=True)
    async with opened(postgresql(postgresql_url)) as store:
        with pytest.raises(StoreError, match="shorten it"):
            await store.apply_all([(A, long), (B, short)])
        assert await store.namespaces() == []


async def test_many_new_namespaces_are_written_in_a_single_transaction(postgresql_url: str) -> None:
    some = [NamespaceName("tenant", f"n{number}") for number in range(100)]
    async with opened(postgresql(postgresql_url)) as store:
        await store.apply_all(
            [(one, TopicChanges([topic("x", one)], adds_only=True)) for one in some]
        )
        async with connection(postgresql_url) as asked:
            query = "SELECT count(DISTINCT xmin::text) FROM floodgate.namespaces"
            assert await asked.fetchval(query) == 1


async def test_a_namespace_created_in_a_batch_is_published_to_another_store(
    postgresql_url: str,
) -> None:
    made = [(one, TopicChanges([topic("x", one)], adds_only=True)) for one in (A, B)]
    async with (
        opened(postgresql(postgresql_url)) as one,
        opened(postgresql(postgresql_url)) as other,
    ):
        feed = other.changes()
        assert await other.snapshot(A) is None
        await one.apply_all(made)
        assert (await told(feed, 1))[0] == Change(A, 1, complete=False)
        assert await names(other) == [base("x")]
