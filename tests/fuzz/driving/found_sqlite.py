"""SQLite topic stores of a broker, corrupted afterwards: cells, or bytes."""

import sqlite3
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from random import Random

from broker.configuration.config import BrokerConfig
from broker.configuration.dynamic import DynamicConfiguration
from broker.policies.service import PolicyService
from broker.stores.changes import TopicChanges
from broker.stores.sqlite.store import SqliteStore
from broker.stores.store import TenantInfo
from loadgen.virtual.loop import VirtualClock
from proto.names import NamespaceName
from tests.fuzz.driving import changed_file
from tests.fuzz.driving.scratch import scratch
from tests.fuzz.driving.stepped_loop import SteppedLoop

CELLS = (
    ("namespaces", "name"), ("namespaces", "version"), ("topics", "namespace"), ("topics", "name"),
    ("partitioned", "partitions"), ("partitioned", "name"), ("properties", "value"),
    ("policies", "bundles"), ("tenants", "roles"), ("tenants", "clusters"), ("tenants", "name"),
    ("configuration", "value"), ("configuration", "key"), ("message_policies", "value"),
    ("message_policies", "key"), ("message_policies", "name"), ("marks", "value"),
)  # fmt: skip
_CACHE_BYTES = 1 << 20


async def opened(data: bytes) -> None:
    """Open a changed file, and read as a starting broker does.

    Raises:
        StoreError: The file cannot be opened or read.
    """
    path = scratch("sqlite") / "found.db"
    for old in path.parent.iterdir():
        old.unlink()
    path.write_bytes(written())
    changed_file.change(path, data, CELLS)
    store = SqliteStore(path, _CACHE_BYTES)
    await store.open()
    async with AsyncExitStack() as ends:
        ends.push_async_callback(store.close)
        config = BrokerConfig.from_properties({})
        dynamic = DynamicConfiguration(config, store, lambda _: None)
        await dynamic.start()
        ends.push_async_callback(dynamic.close)
        policies = PolicyService(store, lambda: config.policies, _CLOCK)
        await policies.start()
        ends.push_async_callback(policies.close)
        await _read(store)


async def _read(store: SqliteStore) -> None:
    """Read all namespaces, and add a topic to each."""
    await store.tenants()
    for namespace in await store.namespaces():
        await store.snapshot(namespace)
        await store.policies(namespace)
        await store.properties(namespace, "persistent://public/default/t")
        await store.create_namespace(namespace)
        changes = TopicChanges([f"persistent://{namespace}/new".encode()])
        await store.apply(namespace, changes)


_CLOCK = VirtualClock(SteppedLoop())


@cache
def written() -> bytes:
    """Return the file of a broker with a little of every kind of data."""
    path = scratch("sqlite") / "written.db"
    SteppedLoop().run(_write(path))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    content = path.read_bytes()
    path.unlink()
    return content


async def _write(path: Path) -> None:
    store = SqliteStore(path, _CACHE_BYTES)
    await store.open()
    namespace = NamespaceName.parse("public/default")
    await store.create_tenant("public", TenantInfo())
    await store.create_namespace(namespace)
    names = [f"persistent://public/default/{one}".encode() for one in ("t", "p-partition-0")]
    await store.apply(
        namespace, TopicChanges(names, partitioned={"persistent://public/default/p": 1})
    )
    await store.set_configuration("maxTopicsPerNamespace", "5")
    await store.set_policy("public/default", "message_ttl", 5)
    await store.remember_import("x")
    await store.close()


SEEDS = changed_file.seeds(CELLS)


def changed(data: bytes, choices: Random) -> bytes:
    """Return an input with a change added or removed."""
    return changed_file.one_more_or_less(data, choices, written())
