"""The entries that a compaction has left of a topic."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from broker.messages.entry import Entry
from broker.messages.managed_ledger import MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.messages.position import EARLIEST, LATEST, Position

if TYPE_CHECKING:
    from broker.messages.managed_ledger import ManagedLedger

_POSITION = struct.Struct(">qq")


class CompactedEntries:
    """The entries that a compaction has left, read by their positions in the topic.

    They are in a ledger of their own, each with its position in front.

    Attributes:
        ledger: Holds them.
        ledger_id: The number of that ledger among all of the broker.
        horizon: Up to here the topic was compacted.
        first: The first position that is left; beyond all where nothing is.

    Source: upstream CompactedTopicImpl.
    """

    def __init__(self, ledger: ManagedLedger, ledger_id: int, horizon: Position) -> None:
        self.ledger = ledger
        self.ledger_id = ledger_id
        self.horizon = horizon
        self.first = LATEST
        # Where the last read ended, so that who reads on need not look for it.
        self._read_up_to = EARLIEST, 0

    def add(self, entry: Entry) -> None:
        """Add an entry that is left, in the order of positions.

        Raises:
            MessageStoreError: It cannot be stored.
        """
        digest = MessageDigest(entry.message_count, entry.publish_time, entry.deliver_at)
        self.ledger.append(_POSITION.pack(*entry.position) + entry.data, digest)
        self.first = min(self.first, entry.position)

    async def recover(self) -> None:
        """Look for the first position that is left.

        Raises:
            MessageStoreError: It cannot be read.
        """
        for entry in await self.fetch(EARLIEST, 1, 1):
            self.first = entry.position

    def covers(self, position: Position) -> bool:
        """Tell whether a position lies within what was compacted, though its ledger may be gone."""
        return self.first <= position <= self.horizon

    def __len__(self) -> int:
        return self.ledger.count(EARLIEST, self.ledger.last_confirmed)

    async def fetch(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return entries from a position in the topic on, at least one if there is any.

        Raises:
            MessageStoreError: They cannot be read, or are deleted: the topic was compacted anew.
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
        """Return the last entry that is left and can be read; None where nothing is.

        Raises:
            MessageStoreError: It cannot be read, or is deleted: the topic was compacted anew.
        """
        for index in reversed(range(len(self))):
            own = await self._whole(index)
            if own is not None:
                return _of_topic(own)
        if not len(self) and self.first < LATEST:
            raise MessageStoreError(f"{self.ledger.name} is deleted")
        return None

    async def _own(self, index: int, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return entries from a number on; where damaged ones are left out, from the next on."""
        if index >= len(self):
            return []
        at = self.ledger.at(EARLIEST, index + 1)
        return await self.ledger.fetch(at, max_entries, max_bytes)

    async def _index(self, first: Position) -> int:
        """Return a number behind all entries before a position, and not behind others, by halving.

        One that is damaged says nothing: the next one that is whole does. Whether that is told of,
        or left out, is for who reads it.
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
        """Return an entry by its number; None if it is damaged, or deleted."""
        if index >= len(self):
            return None
        return await self.ledger.entry(self.ledger.at(EARLIEST, index + 1))


def _of_topic(own: Entry) -> Entry:
    """Return an entry as it is in its topic."""
    ledger_id, entry_id = _POSITION.unpack_from(own.data)
    digest = MessageDigest(own.message_count, own.publish_time, own.deliver_at)
    return Entry(ledger_id, entry_id, own.data[_POSITION.size :], digest)
