"""Batches of which some messages are acknowledged and some are not."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.messages.position import Position

_WORD_BITS = 64
_WORD = (1 << _WORD_BITS) - 1
_STALE_PLACES = 64


class BatchAcks:
    """The entries that are acknowledged in part, each with the messages that are left.

    On the wire and in the store these are the words of a Java BitSet, in which 1 stands for a
    message that is not acknowledged; words of 0 at the end may be missing.

    Source: upstream ManagedCursorImpl, batchDeletedIndexes.
    """

    def __init__(self) -> None:
        self._left: dict[Position, int] = {}
        # All positions of the above and some that are gone, smallest first.
        self._order: list[Position] = []

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
        before = self._left.get(position)
        words = _number(ack_set)
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
        """Return what is stored."""
        return {position: _words(bits) for position, bits in self._left.items()}

    @staticmethod
    def of_mapping(batches: Mapping[Position, Sequence[int]]) -> BatchAcks:
        """Return what was stored."""
        acks = BatchAcks()
        acks._left = {position: _number(words) for position, words in batches.items()}
        acks._order = sorted(acks._left)
        return acks

    def _keep(self, position: Position, bits: int) -> None:
        if position not in self._left:
            if len(self._order) > 2 * len(self._left) + _STALE_PLACES:
                self._order = sorted(self._left)
            heapq.heappush(self._order, position)
        self._left[position] = bits


def _number(words: Sequence[int]) -> int:
    return int.from_bytes(b"".join([(w & _WORD).to_bytes(8, "little") for w in words]), "little")


def _words(bits: int) -> tuple[int, ...]:
    count = -(-bits.bit_length() // _WORD_BITS)
    data = bits.to_bytes(count * 8, "little")
    return tuple(
        int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(0, len(data), 8)
    )
