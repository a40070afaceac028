"""The compactor, which compacts a broker's topics one at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from broker.messages.compaction.compacted_entries import CompactedEntries
from broker.messages.compaction.latest_keys import LatestKeys
from broker.messages.errors import MessageStoreError
from broker.messages.position import EARLIEST, Position
from proto.names import TopicName
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.messages.entry import Entry
    from broker.messages.stores.managed_ledger import ManagedLedger, MessageStore

_READ_ENTRIES, _READ_BYTES = 100, 1024 * 1024
_FLUSH_BYTES = 4 * 1024 * 1024

_COMPACTED = "compacted://"
UNUSED_PROPERTY = "compaction.unused"
"""Ledger property listing unused compaction ledgers, so that they are deleted even after a crash.

The value is the name of one ledger, with the numbers of all.
"""


class Compactor:
    """The compactor of all topics; it runs one compaction at a time, and further ones wait.

    Attributes:
        store: The store of the topics and the compacted entries.
    """

    def __init__(self, store: MessageStore) -> None:
        self.store = store
        self._turn = asyncio.Semaphore(1)
        self._steps = Steps()

    async def compact(
        self, ledger: ManagedLedger, before: CompactedEntries | None
    ) -> tuple[CompactedEntries, int]:
        """Read the compacted and new entries of a topic, and keep the last message of each key.

        Args:
            ledger: The topic's ledger.
            before: The entries of the previous compaction; None before the first.

        Returns:
            The entries that the compaction has kept, and the number of removed messages.

        Raises:
            MessageStoreError: The store failed.
            TooManyKeysError: The keys exceed the memory limit.
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
                with suppress(MessageStoreError):  # The next compaction retries the deletion.
                    await delete_unused(self.store, ledger)
                raise
            return left, keys.removed

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
    """Return the name of the ledger that stores a topic's compacted entries.

    No topic can have this name.
    """
    return f"{_COMPACTED}{topic.partition('://')[2]}-{','.join(map(str, ledger_ids))}"


def unused_ids(ledger: ManagedLedger) -> list[int]:
    """Return the ids of a topic's compacted ledgers that are no longer used but not yet deleted."""
    _, _, numbers = ledger.properties.get(UNUSED_PROPERTY, "").rpartition("-")
    return [int(number) for number in numbers.split(",") if number]


def set_unused(ledger: ManagedLedger, *ledger_ids: int) -> None:
    """Record the ids of a topic's compacted ledgers that are no longer used, for deletion."""
    names = compacted_name(ledger.name, *ledger_ids) if ledger_ids else None
    ledger.set_property(UNUSED_PROPERTY, names)


async def delete_unused(store: MessageStore, ledger: ManagedLedger) -> None:
    """Delete a topic's compacted ledgers that are recorded as no longer used.

    Raises:
        MessageStoreError: A deletion failed; the ledger stays recorded as unused.
    """
    for ledger_id in unused_ids(ledger):
        await store.delete_ledger(compacted_name(ledger.name, ledger_id))
        set_unused(ledger, *(other for other in unused_ids(ledger) if other != ledger_id))


def is_compacted(stored: str) -> bool:
    """Return True if a ledger of this name stores compacted entries, not a topic's messages."""
    return stored.startswith(_COMPACTED)


def topic_of(stored: str) -> TopicName:
    """Return the topic to which a ledger belongs, given the ledger's name.

    The ledger stores the topic's messages or its compacted entries.
    """
    if stored.startswith(_COMPACTED):
        stored = f"persistent://{stored.removeprefix(_COMPACTED).rpartition('-')[0]}"
    return TopicName.parse(stored)


async def _source(
    ledger: ManagedLedger, before: CompactedEntries | None, last: Position
) -> AsyncIterator[list[Entry]]:
    """Yield lists of a topic's entries: first those of the previous compaction, then newer ones."""
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
