"""Message stores for tests, and a topic that records its ledger's reports."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from broker.messages.errors import MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.messages.position import Position
from broker.messages.stores.managed_ledger import ManagedLedger, MessageStore
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.room import NO_BOUNDS
from broker.messages.stores.sqlite.store import DatabaseOptions, SqliteMessageStore
from tests.support.clocks.manual_clock import ManualClock

TOPIC = "persistent://public/default/orders"
OTHER_TOPIC = "persistent://public/default/others"


class Noting:
    """Records a ledger's reports.

    Attributes:
        last: Last stored position, or None.
        error: Cause of failure.
    """

    def __init__(self) -> None:
        self.last: Position | None = None
        self.error: MessageStoreError | None = None

    def confirmed(self, last: Position) -> None:
        assert self.last is None or self.last < last
        self.last = last

    def failed(self, error: MessageStoreError) -> None:
        assert self.error is None
        self.error = error


def digest(publish_time: int = 1, deliver_at: int = 0, message_count: int = 1) -> MessageDigest:
    """Return an entry's facts for the store."""
    return MessageDigest(message_count, publish_time, deliver_at)


KINDS = ("memory", "sqlite", "sqlite with fsync", "sqlite with nothing in memory")
"""All stores under test."""


def sqlite_store(
    path: Path,
    *,
    fsync: bool = False,
    skip_damaged: bool = False,
    per_ledger: int = 5,
    recent_bytes: int = 1 << 24,
    clock: ManualClock | None = None,
) -> SqliteMessageStore:
    """Return a database store with few entries per ledger."""
    options = DatabaseOptions(fsync, skip_damaged, max_entries_per_ledger=per_ledger)
    return SqliteMessageStore(path, clock or ManualClock(1.0), NO_BOUNDS, options, recent_bytes)


def message_store(kind: str, folder: Path, per_ledger: int = 5) -> MessageStore:
    """Return a message store by its parameter name."""
    if kind == "memory":
        return MemoryMessageStore(max_entries_per_ledger=per_ledger, now_ms=lambda: 1_000)
    return sqlite_store(
        folder / "messages.db",
        fsync=kind == "sqlite with fsync",
        per_ledger=per_ledger,
        recent_bytes=0 if "nothing" in kind else 1 << 24,
    )


@asynccontextmanager
async def opened(store: MessageStore) -> AsyncIterator[MessageStore]:
    """Open a store for a block of code."""
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def filled(ledger: ManagedLedger, count: int, first: int = 0) -> list[Position]:
    """Append numbered entries and wait until they are stored."""
    positions = [
        ledger.append(b"entry %d" % number, digest(publish_time=1_000 + 10 * number))
        for number in range(first, first + count)
    ]
    await ledger.flushed()
    return positions
