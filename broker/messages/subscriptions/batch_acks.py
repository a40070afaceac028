"""Acknowledgements of single messages within batches."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from broker.messages.position import LATEST, Position
from broker.messages.subscriptions.place_map import PlaceMap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.messages.subscriptions.place_map import Piece

_WORD_BITS = 64
MOST_MESSAGES = 10_000
"""The most messages of a batch acknowledged in part; larger batches are acknowledged as a whole.

Each delivery carries the remaining messages, and a producer may claim billions of messages.
"""
MOST_SAVED = 10_000
"""The largest number of partly acknowledged batches stored across restarts.

Source: upstream managedLedgerMaxBatchDeletedIndexToPersist.
"""


class BatchAcks:
    """The partly acknowledged batches of a subscription, with each batch's remaining messages.

    On the wire and in the store, the remaining messages are the words of a Java BitSet: 1 is an
    unacknowledged message; trailing words of 0 may be missing.

    Source: upstream ManagedCursorImpl, batchDeletedIndexes.

    Attributes:
        gone: The memory of forgotten batches, to be freed in steps: freeing a million batches in
            one step would block the event loop.
    """

    def __init__(self) -> None:
        self._left = PlaceMap()
        self.gone: list[Piece] = []

    def __len__(self) -> int:
        return len(self._left)

    def __bool__(self) -> bool:
        return bool(self._left)

    def __contains__(self, position: tuple[int, int]) -> bool:
        return position in self._left

    def acknowledge(
        self, position: Position, size: int, ack_set: Sequence[int]
    ) -> tuple[int, bool]:
        """Acknowledge the messages of a batch whose bits in ``ack_set`` are 0.

        Messages acknowledged earlier stay acknowledged.

        Args:
            position: The entry.
            size: Messages in the batch.
            ack_set: The words of the bit set that a consumer has sent.

        Returns:
            The number of newly acknowledged messages, and True if no message remains; then the
                entry is forgotten here.
        """
        if size > MOST_MESSAGES:
            return (0, False) if any(ack_set) else (size, True)
        before = self._left.get(position, 0)
        words = _number(ack_set[: -(-size // _WORD_BITS)])
        if not before:
            # Bounded by the consumer's words: a producer may claim any size.
            after = words & (1 << min(size, len(ack_set) * _WORD_BITS)) - 1
            newly = size - after.bit_count()
        else:
            after = before & words
            newly = before.bit_count() - after.bit_count()
        if not after:
            self.discard(position)
            return newly, True
        if newly or not before:
            # Also if all messages remain: a real broker sends the set (recorded).
            self._left.put(position, after)
        return newly, False

    def left(self, position: Position, size: int) -> int:
        """Return the number of unacknowledged messages in an entry with ``size`` messages."""
        bits = self._left.get(position, 0)
        return bits.bit_count() if bits else size

    def words(self, position: Position) -> tuple[int, ...] | None:
        """Return the ack_set field of a MESSAGE command for an entry.

        Return None if no message of the entry is acknowledged.
        """
        bits = self._left.get(position, 0)
        return _words(bits) if bits else None

    def discard(self, position: Position) -> None:
        """Forget an entry because all its messages are acknowledged."""
        if self._left:
            self._left.pop(position)

    def discard_through(self, position: Position) -> None:
        """Forget all entries up to and including a position."""
        if self._left:
            self.gone += self._left.cut(position)

    def clear(self) -> None:
        """Forget all entries."""
        self.discard_through(LATEST)

    def freed(self) -> Iterator[None]:
        """Free the memory of forgotten entries; each step of the iterator frees some."""
        while self.gone:
            self.gone.pop()
            yield

    def as_mapping(self) -> Mapping[Position, tuple[int, ...]]:
        """Return the bit sets to store, keyed by position.

        If there are more than ``MOST_SAVED`` bit sets, return those of the lowest positions.
        """
        return _StoredWords(self._left.copy(MOST_SAVED))

    @staticmethod
    def of_mapping(batches: Mapping[Position, Sequence[int]]) -> BatchAcks:
        """Restore partly acknowledged batches from a mapping made by ``as_mapping``."""
        acks = BatchAcks()
        if isinstance(batches, _StoredWords):
            acks._left = batches.bits.copy(MOST_SAVED)
        else:
            for at, words in batches.items():
                acks._left.put(at, _number(words))
        return acks


class _StoredWords(Mapping[Position, tuple[int, ...]]):
    """The bit sets of partly acknowledged batches in stored form, computed when first read.

    For 10,000 batches of 10,000 messages the computation takes a tenth of a second; a store that
    has its own thread computes them there.
    """

    def __init__(self, bits: PlaceMap) -> None:
        self.bits = bits

    def __len__(self) -> int:
        return len(self.bits)

    @cached_property
    def _made(self) -> dict[Position, tuple[int, ...]]:
        return {Position(*place): _words(bits) for place, bits in self.bits.items()}

    def __iter__(self) -> Iterator[Position]:
        return iter(self._made)

    def __getitem__(self, position: Position) -> tuple[int, ...]:
        return self._made[position]


def _number(words: Sequence[int]) -> int:
    data = struct.pack(f"<{len(words)}q", *words)
    return int.from_bytes(data, "little")


def _words(bits: int) -> tuple[int, ...]:
    count = -(-bits.bit_length() // _WORD_BITS)
    return struct.unpack(f"<{count}q", bits.to_bytes(count * 8, "little"))
