"""SQLite files that a broker has written, and something has changed since: cells, or bytes."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import AsyncExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

from broker.configuration.config import BrokerConfig
from broker.configuration.dynamic import DynamicConfiguration
from broker.policies.service import PolicyService
from broker.stores.changes import TopicChanges
from broker.stores.sqlite.store import SqliteStore
from broker.stores.store import TenantInfo
from loadgen.virtual.loop import VirtualClock
from proto.names import NamespaceName
from tests.fuzz.driving.scratch import scratch
from tests.fuzz.driving.stepped_loop import SteppedLoop

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

BYTES, CELL = 0, 1
CELLS = (
    ("namespaces", "name"), ("namespaces", "version"), ("topics", "namespace"), ("topics", "name"),
    ("partitioned", "partitions"), ("partitioned", "name"), ("properties", "value"),
    ("policies", "bundles"), ("tenants", "roles"), ("tenants", "clusters"), ("tenants", "name"),
    ("configuration", "value"), ("configuration", "key"), ("message_policies", "value"),
    ("message_policies", "key"), ("message_policies", "name"), ("marks", "value"),
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    0, -1, 2**62, 1.5, "", "x", "a/b/c", "[]", "{}", "{", '["r"]', "null", "5", b"", b"\xff", "ä",
    b"persistent://public/default/t", "public/default", b"t-partition-1", '{"a": 1}', "true", b"5",
)  # fmt: skip
_CACHE_BYTES = 1 << 20


def _folder() -> Path:
    folder = scratch() / "sqlite"
    folder.mkdir(exist_ok=True)
    return folder


async def opened(data: bytes) -> None:
    """Open a file that was changed, and read what a broker reads when it starts.

    Raises:
        StoreError: It cannot be opened or read.
    """
    path = _folder() / "found.db"
    for old in path.parent.iterdir():
        old.unlink()
    path.write_bytes(written())
    _change(path, data)
    store = SqliteStore(path, _CACHE_BYTES)
    await store.open()
    async with AsyncExitStack() as ends:
        ends.push_async_callback(store.close)
        config = BrokerConfig()
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


def _change(path: Path, data: bytes) -> None:
    """Carry out the changes of an input: five bytes each, and a byte run's bytes."""
    content = bytearray(path.read_bytes())
    cells, at = [], 0
    while at + 5 <= len(data):
        what, first, second, size = struct.unpack_from(">BHBB", data, at)
        at += 5
        if what % 2 == CELL:
            cells.append((CELLS[first % len(CELLS)], VALUES[second % len(VALUES)]))
            continue
        place = (first * 256 + second) % len(content)
        content[place : place + size % 16] = data[at : at + size % 16]
        at += size % 16
    path.write_bytes(content)
    if cells:
        connection = sqlite3.connect(path)
        try:
            for (table, column), value in cells:
                connection.execute(f"UPDATE OR IGNORE {table} SET {column}=?", (value,))
            connection.commit()
        except (sqlite3.Error, UnicodeDecodeError):
            pass  # Broken by now: what was changed before stays.
        finally:
            connection.close()


@cache
def written() -> bytes:
    """Return the file of a broker with a little of everything."""
    path = _folder() / "written.db"
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


SEEDS = [
    b"",
    *(struct.pack(">BHBB", CELL, cell, 4, 0) for cell in range(len(CELLS))),
    struct.pack(">BHBB", BYTES, 16, 0, 3) + b"abc",
]


def changed(data: bytes, choices: Random) -> bytes:
    """Return one change more, or one less."""
    if data and choices.random() < 0.3:
        return data[5:]
    if choices.random() < 0.8:
        one = struct.pack(">BHBB", CELL, choices.randrange(999), choices.randrange(256), 0)
    else:
        size = choices.randrange(1, 8)
        head = struct.pack(">BHBB", BYTES, choices.randrange(500), choices.randrange(256), size)
        one = head + choices.randbytes(size)
    return one + data
