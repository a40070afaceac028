"""The entries that a compaction has left of a topic."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from broker.messages.entry import Entry
from broker.messages.metadata import MessageDigest
from broker.messages.position import EARLIEST, Position

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

    Source: upstream CompactedTopicImpl.
    """

    def __init__(self, ledger: ManagedLedger, ledger_id: int, horizon: Position) -> None:
        self.ledger = ledger
        self.ledger_id = ledger_id
        self.horizon = horizon

    def add(self, entry: Entry) -> None:
        """Add an entry that is left, in the order of positions.

        Raises:
            MessageStoreError: It cannot be stored.
        """
        digest = MessageDigest(entry.message_count, entry.publish_time, entry.deliver_at)
        self.ledger.append(_POSITION.pack(*entry.position) + entry.data, digest)

    def __len__(self) -> int:
        return self.ledger.count(EARLIEST, self.ledger.last_confirmed)

    def read(self, first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        """Return entries from a position in the topic on, at least one if there is any."""
        index = self._index(first)
        if index == len(self):
            return []
        own = self.ledger.read(self.ledger.at(EARLIEST, index + 1), max_entries, max_bytes)
        return [_of_topic(entry) for entry in own]

    def holds(self, position: Position) -> bool:
        """Tell whether this very entry is left."""
        found = self.read(position, 1, 1) if position <= self.horizon else []
        return bool(found) and found[0].position == position

    def _index(self, first: Position) -> int:
        """Return the number of the first entry that is not before a position, by halving."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            (own,) = self.ledger.read(self.ledger.at(EARLIEST, middle + 1), 1, 1)
            if _POSITION.unpack_from(own.data) < first:
                low = middle + 1
            else:
                high = middle
        return low


def _of_topic(own: Entry) -> Entry:
    """Return an entry as it is in its topic."""
    ledger_id, entry_id = _POSITION.unpack_from(own.data)
    digest = MessageDigest(own.message_count, own.publish_time, own.deliver_at)
    return Entry(ledger_id, entry_id, own.data[_POSITION.size :], digest)
