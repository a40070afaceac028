"""The entries of a topic that a compaction has kept."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from broker.messages.entry import Entry
from broker.messages.errors import MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.messages.position import EARLIEST, LATEST, Position

if TYPE_CHECKING:
    from broker.messages.stores.managed_ledger import ManagedLedger

_POSITION = struct.Struct(">qq")


class CompactedEntries:
    """The entries of a topic that a compaction has kept, found by their positions in the topic.

    A separate ledger stores these entries, each prefixed with its position in the topic.

    Attributes:
        ledger: The ledger of compacted entries.
        ledger_id: The ledger's number, unique on the broker.
        horizon: The last position of the topic that the compaction has read.
        first: The position of the first kept entry; beyond all positions if no entry is kept.

    Source: upstream CompactedTopicImpl.
    """

    def __init__(self, ledger: ManagedLedger, ledger_id: int, horizon: Position) -> None:
        self.ledger = ledger
        self.ledger_id = ledger_id
        self.horizon = horizon
        self.first = LATEST
        # End of the last read, which saves the next read a search.
        self._read_up_to = EARLIEST, 0

    def add(self, entry: Entry) -> None:
        """Store an entry that the compaction keeps; the caller adds entries in order of positions.

        Raises:
            MessageStoreError: The entry cannot be stored.
        """
        digest = MessageDigest(entry.message_count, entry.publish_time, entry.deliver_at)
        self.ledger.append(_POSITION.pack(*entry.position) + entry.data, digest)
        self.first = min(self.first, entry.position)

    async def recover(self) -> None:
        """Read the position of the first kept entry after a restart.

        Raises:
            MessageStoreError: The entry cannot be read.
        """
        for entry in await self.fetch(EARLIEST, 1, 1):
            self.first = entry.position

    def covers(self, position: Position) -> bool:
        """Return True if a position is between the first kept entry and the end of the compaction.

        The result stays True after the topic's ledger with the position was deleted.
        """
        return self.first <= position <= self.horizon

    def __len__(self) -> int:
        return self.ledger.count(EARLIEST, self.ledger.last_confirmed)

    async def fetch(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return kept entries from a position of the topic on, within limits of number and bytes.

        The result has at least one entry, however large, if any entry is kept there.

        Raises:
            MessageStoreError: The entries cannot be read, or a new compaction deleted the ledger.
        """
        index = await self._index(first)
        own = await self._own(index, max_entries, max_bytes)
        if not len(self) and self.first < LATEST:
            raise MessageStoreError(f"{self.ledger.name} is deleted")
        left = [_of_topic(entry) for entry in own]
        if left:
            last = left[-1].position
            behind = self.ledger.count(EARLIEST, own[-1].position)
            self._read_up_to = Position(last.ledger_id, last.entry_id + 1), behind
        return left

    async def last_entry(self) -> Entry | None:
        """Return the last kept entry that is readable; None if there is none.

        Raises:
            MessageStoreError: The entry cannot be read, or a new compaction deleted the ledger.
        """
        for index in reversed(range(len(self))):
            own = await self._whole(index)
            if own is not None:
                return _of_topic(own)
        if not len(self) and self.first < LATEST:
            raise MessageStoreError(f"{self.ledger.name} is deleted")
        return None

    async def _own(self, index: int, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return entries of the compacted ledger from an index on, within the given limits.

        If damaged entries are skipped, the first returned entry may have a higher index.
        """
        if index >= len(self):
            return []
        at = self.ledger.at(EARLIEST, index + 1)
        return await self.ledger.fetch(at, max_entries, max_bytes)

    async def _index(self, first: Position) -> int:
        """Return the index of the first kept entry at or after a position, by binary search.

        A damaged entry has no readable position, so the search compares the next undamaged entry.
        The later read reports or skips the damage.
        """
        behind, number = self._read_up_to
        if first == behind:
            return number
        low, high = 0, len(self)
        while low < high:
            middle = at = (low + high) // 2
            while at < high and (own := await self._whole(at)) is None:
                at += 1
            found = LATEST if at == high or own is None else _POSITION.unpack_from(own.data)
            if found == first:
                return at
            if found < first:
                low = at + 1
            else:
                high = middle
        return low

    async def _whole(self, index: int) -> Entry | None:
        """Return the kept entry with a given index; None if the entry is damaged or deleted."""
        if index >= len(self):
            return None
        return await self.ledger.entry(self.ledger.at(EARLIEST, index + 1))


def _of_topic(own: Entry) -> Entry:
    ledger_id, entry_id = _POSITION.unpack_from(own.data)
    digest = MessageDigest(own.message_count, own.publish_time, own.deliver_at)
    return Entry(ledger_id, entry_id, own.data[_POSITION.size :], digest)
