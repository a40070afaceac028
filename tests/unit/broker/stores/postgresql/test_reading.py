"""A namespace is read in parts, whichever part is large."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from broker.stores.changes import MAX_TOLD_NAMES, Change, TopicChanges
from broker.stores.conditions import MANY_NAMES
from broker.stores.postgresql import reading
from broker.stores.postgresql.connections import Row
from broker.stores.postgresql.view import KnownNamespace
from broker.stores.snapshots.snapshot import NamespaceSnapshot
from tests.support.stores.topic_stores import A, base, opened, postgresql, told, topic

MANY = 3 * reading.ROWS_PER_FETCH + 1


class RowsOf:
    """A connection to a database of one namespace; records the sizes of requests."""

    def __init__(self, names: Sequence[bytes], bases: Sequence[bytes]) -> None:
        self._tables = {
            "topics": [(name,) for name in names],
            "partitioned": [(b, 2) for b in bases],
        }
        self.handed: list[int] = []

    @asynccontextmanager
    async def transaction(self, **_: object) -> AsyncIterator[None]:
        yield

    async def fetchrow(self, *_: object) -> Row:
        return (7, 3)

    async def fetch(self, query: str, *_: object) -> list[Row]:
        rows = next(rows for table, rows in self._tables.items() if f".{table} " in query)
        self.handed.append(len(rows))
        return list(rows)

    async def cursor(self, query: str, *_: object) -> Fetched:
        return Fetched(await self.fetch(query), self.handed)


class Fetched:
    """Rows returned in portions."""

    def __init__(self, rows: list[Row], handed: list[int]) -> None:
        self._rows, self._handed = rows, handed
        handed.pop()

    async def fetch(self, n: int) -> list[Row]:
        part, self._rows = self._rows[:n], self._rows[n:]
        self._handed.append(len(part))
        return part


@pytest.mark.parametrize("many", ["names", "partition counts"])
async def test_names_and_partition_counts_are_fetched_in_portions(many: str) -> None:
    much, little = [b"%d" % n for n in range(MANY)], [b"x"]
    connection = RowsOf(*((much, little) if many == "names" else (little, much)))
    found = await reading.read_namespace(connection, "tenant/a", None)
    assert max(connection.handed) == reading.ROWS_PER_FETCH
    assert found is not None
    assert found.known == KnownNamespace(7, 3)
    assert (len(found.names), len(found.partitioned)) == (
        (MANY, 1) if many == "names" else (1, MANY)
    )


async def test_a_snapshot_of_many_counts_and_few_names_is_built_off_the_event_loop(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {base(f"p{n}"): 1 for n in range(MANY_NAMES + 1)}
    async with opened(postgresql(postgresql_url)) as store:
        await store.apply(A, TopicChanges([topic("t")], partitioned=counts))
    build, threads = NamespaceSnapshot.from_rows, set[threading.Thread]()

    def noticed(*rows: object) -> NamespaceSnapshot:
        threads.add(threading.current_thread())
        return build(*rows)

    monkeypatch.setattr(NamespaceSnapshot, "from_rows", staticmethod(noticed))
    async with opened(postgresql(postgresql_url)) as store:
        snapshot = await store.snapshot(A)
    assert dict(snapshot.partitioned) == counts
    assert threads
    assert threading.current_thread() not in threads


async def test_a_change_of_many_partition_counts_is_published_without_details(
    postgresql_url: str,
) -> None:
    counts = {base(f"p{n}"): 1 for n in range(MAX_TOLD_NAMES + 1)}
    async with (
        opened(postgresql(postgresql_url)) as store,
        opened(postgresql(postgresql_url)) as other,
    ):
        await store.create_namespace(A)
        await other.snapshot(A)
        feed = other.changes()
        version = await store.apply(A, TopicChanges(partitioned=counts))
        assert await told(feed, 1) == [Change(A, version, complete=False)]
        assert dict((await other.snapshot(A)).partitioned) == counts


async def test_a_long_change_log_is_read_in_portions_and_in_order(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHANGES_PER_FETCH", 3)
    async with opened(postgresql(postgresql_url)) as store:
        for n in range(8):
            await store.apply(A, TopicChanges([topic(f"t{n}")]))
        async with store.use() as connection:
            newest = await reading.read_version(connection, str(A))
            log = await reading.read_log(connection, KnownNamespace(newest.id, 1), newest)
    assert [change.version for change in log] == list(range(2, 9))
    assert [list(change.added) for change in log] == [[topic(f"t{n}")] for n in range(1, 8)]
