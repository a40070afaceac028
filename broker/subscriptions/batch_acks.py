"""Batches of which some messages are acknowledged and some are not."""

from __future__ import annotations

import heapq
import struct
from itertools import islice
from typing import TYPE_CHECKING

from broker.messages.position import Position

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WORD_BITS = 64
_WORD = (1 << _WORD_BITS) - 1
MOST_MESSAGES = 10_000
"""Messages of the largest batch that can be acknowledged in part; a larger one is acknowledged as
a whole. Each delivery tells what is left, and a producer may say that there are billions."""
MOST_SAVED = 10_000
"""Batches whose parts are stored, and outlive a restart.

Source: upstream managedLedgerMaxBatchDeletedIndexToPersist.
"""
_STALE_PLACES = 64


class BatchAcks:
    """The entries that are acknowledged in part, each with the messages that are left.

    On the wire and in the store these are the words of a Java BitSet, in which 1 stands for a
    message that is not acknowledged; words of 0 at the end may be missing.

    Source: upstream ManagedCursorImpl, batchDeletedIndexes.
    """

    def __init__(self) -> None:
        # By plain tuples, which the garbage collector passes over: there may be very many.
        self._left: dict[tuple[int, int], int] = {}
        # All positions of the above and some that are gone, smallest first.
        self._order: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._left)

    def __contains__(self, position: object) -> bool:
        return position in self._left

    def acknowledge(
        self, position: Position, size: int, ack_set: Sequence[int]
    ) -> tuple[int, bool]:
        """Take off the messages whose bit is 0; those taken off before stay off.

        Args:
            position: The entry.
            size: Messages in its batch.
            ack_set: The words a consumer sent.

        Returns:
            How many messages were not acknowledged before, and True if none is left; then the
            entry is forgotten here.
        """
        if size > MOST_MESSAGES:
            return (0, False) if any(ack_set) else (size, True)
        before = self._left.get(position)
        words = _number(ack_set[: -(-size // _WORD_BITS)])
        if before is None:
            # Only as many ones as the consumer sent words: a producer may say any size.
            after = words & (1 << min(size, len(ack_set) * _WORD_BITS)) - 1
            newly = size - after.bit_count()
        else:
            after = before & words
            newly = before.bit_count() - after.bit_count()
        if not after:
            self.discard(position)
            return newly, True
        if newly or before is None:
            self._keep(
                position, after
            )  # Also if all are left: a real broker tells them (recorded).
        return newly, False

    def left(self, position: Position, size: int) -> int:
        """Return how many messages of an entry of ``size`` are not acknowledged."""
        bits = self._left.get(position)
        return size if bits is None else bits.bit_count()

    def words(self, position: Position) -> tuple[int, ...] | None:
        """Return the ack_set of a MESSAGE; None while the entry is whole."""
        bits = self._left.get(position)
        return None if bits is None else _words(bits)

    def discard(self, position: Position) -> None:
        """Forget an entry: all of it is acknowledged."""
        self._left.pop(position, None)

    def discard_through(self, position: Position) -> None:
        """Forget all entries up to and including a position."""
        while self._order and self._order[0] <= position:
            self._left.pop(heapq.heappop(self._order), None)

    def clear(self) -> None:
        """Forget all."""
        self._left.clear()
        self._order.clear()

    def as_mapping(self) -> dict[Position, tuple[int, ...]]:
        """Return what is stored: of the batches that were acknowledged first, if there are many."""
        first = islice(self._left.items(), MOST_SAVED)
        return {Position(*at): _words(bits) for at, bits in first}

    @staticmethod
    def of_mapping(batches: Mapping[Position, Sequence[int]]) -> BatchAcks:
        """Return what was stored."""
        acks = BatchAcks()
        acks._left = {(*at,): _number(words) for at, words in batches.items()}
        acks._order = sorted(acks._left)
        return acks

    def _keep(self, position: Position, bits: int) -> None:
        place = (position.ledger_id, position.entry_id)
        if place not in self._left:
            if len(self._order) > 2 * len(self._left) + _STALE_PLACES:
                self._order = sorted(self._left)
            heapq.heappush(self._order, place)
        self._left[place] = bits


def _number(words: Sequence[int]) -> int:
    data = struct.pack(f"<{len(words)}Q", *[word & _WORD for word in words])
    return int.from_bytes(data, "little")


def _words(bits: int) -> tuple[int, ...]:
    count = -(-bits.bit_length() // _WORD_BITS)
    return struct.unpack(f"<{count}q", bits.to_bytes(count * 8, "little"))
