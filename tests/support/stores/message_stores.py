"""Message stores for tests, and a topic that notes what its ledger tells it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from broker.messages.managed_ledger import ManagedLedger, MessageStore, MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.messages.position import Position
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.room import NO_BOUNDS
from broker.messages.stores.sqlite.store import DatabaseOptions, SqliteMessageStore
from tests.support.clocks.manual_clock import ManualClock

TOPIC = "persistent://public/default/orders"
OTHER_TOPIC = "persistent://public/default/others"


class Noting:
    """Notes what a ledger tells.

    Attributes:
        last: Up to where it is stored; None for nothing.
        error: Why it failed.
    """

    def __init__(self) -> None:
        self.last: Position | None = None
        self.error: MessageStoreError | None = None

    def confirmed(self, last: Position) -> None:
        """Note a confirmation."""
        assert self.last is None or self.last < last
        self.last = last

    def failed(self, error: MessageStoreError) -> None:
        """Note the failure."""
        assert self.error is None
        self.error = error


def digest(publish_time: int = 1, deliver_at: int = 0, message_count: int = 1) -> MessageDigest:
    """What the store is told of an entry."""
    return MessageDigest(message_count, publish_time, deliver_at)


KINDS = ("memory", "sqlite", "sqlite with fsync", "sqlite with nothing in memory")
"""The stores that all tests of stores run against."""


def sqlite_store(
    path: Path,
    *,
    fsync: bool = False,
    skip_damaged: bool = False,
    per_ledger: int = 5,
    recent_bytes: int = 1 << 24,
    clock: ManualClock | None = None,
) -> SqliteMessageStore:
    """A store in a database, whose ledgers have few entries."""
    options = DatabaseOptions(fsync, skip_damaged, max_entries_per_ledger=per_ledger)
    return SqliteMessageStore(path, clock or ManualClock(1.0), NO_BOUNDS, options, recent_bytes)


def message_store(kind: str, folder: Path, per_ledger: int = 5) -> MessageStore:
    """A store by its name in the parameters of a test."""
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
    """Append numbered entries, and wait until they are stored."""
    positions = [
        ledger.append(b"entry %d" % number, digest(publish_time=1_000 + 10 * number))
        for number in range(first, first + count)
    ]
    await ledger.flushed()
    return positions
