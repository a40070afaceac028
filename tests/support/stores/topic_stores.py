"""The stores under test, and changes to apply."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import Change, ChangeFeed, TopicChanges
from broker.stores.memory import MemoryStore
from broker.stores.postgresql.store import PostgresqlStore
from broker.stores.property_rows import PropertyRows
from broker.stores.sqlite.store import SqliteStore
from broker.stores.store import MetadataStore, NamespaceSnapshot
from proto.names import NamespaceName

A = NamespaceName.parse("tenant/a")
B = NamespaceName.parse("tenant/b")
PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT
NON_PERSISTENT = pb.CommandGetTopicsOfNamespace.NON_PERSISTENT
ALL = pb.CommandGetTopicsOfNamespace.ALL
MODES = [PERSISTENT, NON_PERSISTENT, ALL]
CACHE_BYTES = 1_000_000


@asynccontextmanager
async def opened(store: MetadataStore) -> AsyncIterator[MetadataStore]:
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def memory() -> MetadataStore:
    return MemoryStore()


def sqlite(folder: Path) -> MetadataStore:
    """Open the store in a file."""
    return SqliteStore(folder / "topics.db", CACHE_BYTES)


def sqlite_reread(folder: Path) -> MetadataStore:
    """Open a store without a memory cache, so that the file answers."""
    store = SqliteStore(folder / "topics.db", 0)
    return _forgetful(store, store._cache.forget)


def postgresql(url: str) -> MetadataStore:
    """Open the store in a database."""
    return PostgresqlStore(url, CACHE_BYTES)


def postgresql_reread(url: str) -> MetadataStore:
    """Open a store without a memory cache, so that the database answers."""
    store = PostgresqlStore(url, 0)
    return _forgetful(store, store._namespaces._cache.forget)


def _forgetful(store: MetadataStore, forget: object) -> MetadataStore:
    read = store.snapshot

    async def snapshot(namespace: NamespaceName) -> NamespaceSnapshot | None:
        forget(namespace)
        return await read(namespace)

    store.snapshot = snapshot
    return store


def topic(name: str, namespace: NamespaceName = A, domain: str = "persistent") -> bytes:
    return f"{domain}://{namespace}/{name}".encode()


def base(name: str) -> str:
    """Return the full name of a partitioned topic in A."""
    return topic(name).decode()


def changes(*added: bytes, removed: tuple[bytes, ...] = (), **counts: int) -> TopicChanges:
    """Topics to add and remove, and partition counts."""
    return TopicChanges(added, removed, {base(name): count for name, count in counts.items()})


def with_properties(rows: Mapping[bytes, Mapping[str, str]]) -> TopicChanges:
    return TopicChanges(list(rows), properties=PropertyRows.from_mappings(rows))


async def names(
    store: MetadataStore, namespace: NamespaceName = A, mode: int = PERSISTENT
) -> list[str]:
    """Return the names of a listing."""
    snapshot = await store.snapshot(namespace)
    return [] if snapshot is None else list(snapshot.listing(mode).names())


async def selected(
    store: MetadataStore, mode: int = PERSISTENT, /, **properties: str
) -> list[bytes]:
    """Return the topics of A selected by properties."""
    return [name.encode() for name in (await store.select(A, mode, properties)).names()]


async def told(feed: ChangeFeed, count: int) -> list[Change]:
    return [await anext(feed) for _ in range(count)]
