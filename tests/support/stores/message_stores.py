"""Message stores for tests, and a topic that notes what its ledger tells it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from broker.messages.metadata import MessageDigest
from broker.messages.stores.log import cleaner, segments, writer
from broker.messages.stores.log.store import LogMessageStore, LogOptions
from broker.messages.stores.memory import MemoryMessageStore
from tests.support.clocks.manual_clock import ManualClock
from tests.support.stores.simulated_files import SimulatedFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from broker.messages.managed_ledger import ManagedLedger, MessageStore, MessageStoreError
    from broker.messages.position import Position

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


def log_store(
    files: SimulatedFiles, *, fsync: bool = False, drop_damaged: bool = False, per_ledger: int = 5
) -> LogMessageStore:
    """A log store on simulated files, whose ledgers have few entries."""
    options = LogOptions(fsync, drop_damaged, per_ledger)
    return LogMessageStore(files, ManualClock(), options=options, now_ms=lambda: 1_000)


def message_store(kind: str, per_ledger: int = 5) -> MessageStore:
    """A store by its name in the parameters of a test."""
    if kind == "memory":
        return MemoryMessageStore(max_entries_per_ledger=per_ledger, now_ms=lambda: 1_000)
    return log_store(SimulatedFiles(), fsync=kind == "log with fsync", per_ledger=per_ledger)


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


def small_segments(size_bytes: int) -> Iterator[None]:
    """Let segments of the log be small, so that there are many."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (writer, segments, cleaner):
            patch.setattr(module, "SEGMENT_BYTES", size_bytes)
        patch.setattr(cleaner, "NEARLY_DEAD_BYTES", size_bytes // 4)
        yield
