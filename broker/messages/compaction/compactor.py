"""Runs compactions, one at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from broker.messages.compaction.compacted_entries import CompactedEntries
from broker.messages.compaction.latest_keys import LatestKeys
from broker.messages.managed_ledger import MessageStoreError
from broker.messages.position import EARLIEST, Position
from proto.names import TopicName
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.messages.entry import Entry
    from broker.messages.managed_ledger import ManagedLedger, MessageStore

_READ_ENTRIES, _READ_BYTES = 100, 1024 * 1024
_FLUSH_BYTES = 4 * 1024 * 1024

_COMPACTED = "compacted://"
UNUSED_PROPERTY = "compaction.unused"
"""Names ledgers that are not used yet or any more, so that they are deleted after a crash too: the
name of one, with the numbers of all."""


class CompactionRun(NamedTuple):
    """The outcome of a compaction.

    Attributes:
        entries: What is left.
        removed: Messages that are not.
    """

    entries: CompactedEntries
    removed: int


class Compactor:
    """Compacts topics, one after the other: others wait for their turn.

    Attributes:
        store: Holds the topics, and what compactions leave of them.
    """

    def __init__(self, store: MessageStore) -> None:
        self.store = store
        self._turn = asyncio.Semaphore(1)
        self._steps = Steps()

    async def compact(
        self, ledger: ManagedLedger, before: CompactedEntries | None
    ) -> CompactionRun:
        """Read what is left of a topic and what is new, and keep the last message of each key.

        Args:
            ledger: The topic's.
            before: What the compaction before has left; None for none.

        Raises:
            MessageStoreError: The store failed.
            TooManyKeysError: There is no room for the keys.
        """
        async with self._turn:
            await delete_unused(self.store, ledger)
            last = ledger.last_confirmed
            keys = LatestKeys()
            async for entries in _source(ledger, before, last):
                await self._steps.take(keys.note(entries))
            noted = keys.counted
            keys.second_pass()
            left = await self._new_entries(ledger, last)
            try:
                await self._copy(keys, _source(ledger, before, last), left)
                _check_same(noted, keys.counted)
            except BaseException:
                with suppress(MessageStoreError):  # Then the next compaction deletes it.
                    await delete_unused(self.store, ledger)
                raise
            return CompactionRun(left, keys.removed)

    async def _new_entries(self, ledger: ManagedLedger, horizon: Position) -> CompactedEntries:
        ledger_id = self.store.next_id()
        name = compacted_name(ledger.name, ledger_id)
        set_unused(ledger, ledger_id)
        return CompactedEntries(await self.store.open_ledger(name), ledger_id, horizon)

    async def _copy(
        self, keys: LatestKeys, source: AsyncIterator[list[Entry]], left: CompactedEntries
    ) -> None:
        waiting = 0
        async for entries in source:
            for entry in await self._steps.take(keys.kept(entries)):
                left.add(entry)
                waiting += len(entry.data)
            if waiting > _FLUSH_BYTES:
                await left.ledger.flushed()
                waiting = 0
        await left.ledger.flushed()


def _check_same(noted: int, copied: int) -> None:
    if noted != copied:
        raise MessageStoreError("its entries were dropped meanwhile; compact it again")


def compacted_name(topic: str, *ledger_ids: int) -> str:
    """Return the name of the ledger of a topic's compacted entries; no topic can have it."""
    return f"{_COMPACTED}{topic.partition('://')[2]}-{','.join(map(str, ledger_ids))}"


def unused_ids(ledger: ManagedLedger) -> list[int]:
    """Return the numbers of ledgers that the compaction of a topic does not use, or not yet."""
    _, _, numbers = ledger.properties.get(UNUSED_PROPERTY, "").rpartition("-")
    return [int(number) for number in numbers.split(",") if number]


def set_unused(ledger: ManagedLedger, *ledger_ids: int) -> None:
    """Keep those numbers."""
    names = compacted_name(ledger.name, *ledger_ids) if ledger_ids else None
    ledger.set_property(UNUSED_PROPERTY, names)


async def delete_unused(store: MessageStore, ledger: ManagedLedger) -> None:
    """Delete those ledgers.

    Raises:
        MessageStoreError: One is not deleted, and is named still.
    """
    for ledger_id in unused_ids(ledger):
        await store.delete_ledger(compacted_name(ledger.name, ledger_id))
        set_unused(ledger, *(other for other in unused_ids(ledger) if other != ledger_id))


def is_compacted(stored: str) -> bool:
    """Tell whether a ledger is what a compaction has left."""
    return stored.startswith(_COMPACTED)


def topic_of(stored: str) -> TopicName:
    """Return the topic of a ledger: of its messages, or of what a compaction has left of them."""
    if stored.startswith(_COMPACTED):
        stored = f"persistent://{stored.removeprefix(_COMPACTED).rpartition('-')[0]}"
    return TopicName.parse(stored)


async def _source(
    ledger: ManagedLedger, before: CompactedEntries | None, last: Position
) -> AsyncIterator[list[Entry]]:
    """Yield what the compaction before has left, and the entries behind it, some at a time."""
    at = EARLIEST
    if before is not None:
        while left := await before.fetch(at, _READ_ENTRIES, _READ_BYTES):
            yield left
            at = Position(left[-1].ledger_id, left[-1].entry_id + 1)
        at = before.horizon
    at = ledger.following(at)
    while at <= last and (read := await ledger.fetch(at, _READ_ENTRIES, _READ_BYTES)):
        yield [entry for entry in read if entry.position <= last]
        at = ledger.following(read[-1].position)
