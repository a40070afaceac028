"""Batches of which some messages are acknowledged and some are not."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from client.messages.message_id import Place

MOST_BATCHES = 10_000
"""Maximum number of batches stored.

Beyond it, the least recently acknowledged batch is forgotten, so that its acknowledged messages may
be redelivered.
"""
_WORD_BITS = 64


class PartialBatch:
    """The acknowledged and unacknowledged messages of a batch, as a bit set.

    Attributes:
        left: Number of unacknowledged messages.
    """

    __slots__ = ("_bits", "left")

    def __init__(self, size: int) -> None:
        words = -(-size // _WORD_BITS)
        self._bits = bytearray(((1 << size) - 1).to_bytes(words * 8, "little"))
        self.left = size

    def acknowledge(self, index: int) -> bool:
        """Mark a message of the batch as acknowledged.

        Return False if it was marked before, or is not in the batch.
        """
        place, bit = index >> 3, 1 << (index & 7)
        if place >= len(self._bits) or not self._bits[place] & bit:
            return False
        self._bits[place] ^= bit
        self.left -= 1
        return True

    def acknowledge_up_to(self, index: int) -> None:
        """Mark all messages up to and including an index as acknowledged."""
        left = int.from_bytes(self._bits, "little") >> (index + 1) << (index + 1)
        self._bits = bytearray(left.to_bytes(len(self._bits), "little"))
        self.left = left.bit_count()

    def is_acknowledged(self, index: int) -> bool:
        """Return True if the message at an index is acknowledged."""
        place = index >> 3
        return place < len(self._bits) and not self._bits[place] & 1 << (index & 7)

    def ack_set(self) -> tuple[int, ...]:
        """Return the batch as the 64-bit words of a Java BitSet.

        A set bit means that the message is unacknowledged.
        """
        return struct.unpack(f"<{len(self._bits) // 8}q", self._bits)


class PartialBatches:
    """The partly acknowledged batches of one topic's consumer, at most MOST_BATCHES."""

    def __init__(self) -> None:
        self._batches: dict[Place, PartialBatch] = {}

    def __len__(self) -> int:
        return len(self._batches)

    def get(self, entry: Place) -> PartialBatch | None:
        """Return the partly acknowledged batch of an entry, or None."""
        return self._batches.get(entry)

    def begin(self, entry: Place, size: int) -> PartialBatch:
        """Return an entry's batch; if none is stored, create one without acknowledged messages."""
        batch = self._batches.pop(entry, None)
        if batch is None:
            batch = PartialBatch(size)
            if len(self._batches) >= MOST_BATCHES:
                del self._batches[next(iter(self._batches))]
        self._batches[entry] = batch
        return batch

    def forget(self, entry: Place) -> None:
        """Forget the batch of an entry, because the whole entry is acknowledged."""
        self._batches.pop(entry, None)

    def forget_up_to(self, entry: Place) -> None:
        """Forget the batches of all entries up to and including an entry."""
        for earlier in [one for one in self._batches if one <= entry]:
            del self._batches[earlier]

    def keep(self, entries: Container[Place]) -> None:
        """Forget all partly acknowledged batches except those of the given entries."""
        for entry in [one for one in self._batches if one not in entries]:
            del self._batches[entry]

    def clear(self) -> None:
        """Forget all partly acknowledged batches."""
        self._batches.clear()
