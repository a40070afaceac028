"""Batches of which some messages are acknowledged and some are not."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from broker.messages.position import LATEST, Position
from broker.subscriptions.places.place_map import PlaceMap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.subscriptions.places.place_map import Piece

_WORD_BITS = 64
MOST_MESSAGES = 10_000
"""Messages of the largest batch that can be acknowledged in part; a larger one is acknowledged as
a whole. Each delivery tells what is left, and a producer may say that there are billions."""
MOST_SAVED = 10_000
"""Batches whose parts are stored, and outlive a restart.

Source: upstream managedLedgerMaxBatchDeletedIndexToPersist.
"""


class BatchAcks:
    """The entries that are acknowledged in part, each with the messages that are left.

    On the wire and in the store these are the words of a Java BitSet, in which 1 stands for a
    message that is not acknowledged; words of 0 at the end may be missing.

    Source: upstream ManagedCursorImpl, batchDeletedIndexes.

    Attributes:
        gone: What is forgotten and not freed: to free a million at once would hold up everybody.
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
        before = self._left.get(position, 0)
        words = _number(ack_set[: -(-size // _WORD_BITS)])
        if not before:
            # Only as many ones as the consumer sent words: a producer may say any size.
            after = words & (1 << min(size, len(ack_set) * _WORD_BITS)) - 1
            newly = size - after.bit_count()
        else:
            after = before & words
            newly = before.bit_count() - after.bit_count()
        if not after:
            self.discard(position)
            return newly, True
        if newly or not before:
            # Also if all are left: a real broker tells them (recorded).
            self._left.put(position, after)
        return newly, False

    def left(self, position: Position, size: int) -> int:
        """Return how many messages of an entry of ``size`` are not acknowledged."""
        bits = self._left.get(position, 0)
        return bits.bit_count() if bits else size

    def words(self, position: Position) -> tuple[int, ...] | None:
        """Return the ack_set of a MESSAGE; None while the entry is whole."""
        bits = self._left.get(position, 0)
        return _words(bits) if bits else None

    def discard(self, position: Position) -> None:
        """Forget an entry: all of it is acknowledged."""
        if self._left:
            self._left.pop(position)

    def discard_through(self, position: Position) -> None:
        """Forget all entries up to and including a position."""
        if self._left:
            self.gone += self._left.cut(position)

    def clear(self) -> None:
        """Forget all."""
        self.discard_through(LATEST)

    def freed(self) -> Iterator[None]:
        """Free the memory of forgotten entries, some in each step."""
        while self.gone:
            self.gone.pop()
            yield

    def as_mapping(self) -> Mapping[Position, tuple[int, ...]]:
        """Return what is stored: of the first batches, if there are many."""
        return _StoredWords(self._left.copy(MOST_SAVED))

    @staticmethod
    def of_mapping(batches: Mapping[Position, Sequence[int]]) -> BatchAcks:
        """Return what was stored."""
        acks = BatchAcks()
        if isinstance(batches, _StoredWords):
            acks._left = batches.bits.copy(MOST_SAVED)
        else:
            for at, words in batches.items():
                acks._left.put(at, _number(words))
        return acks


class _StoredWords(Mapping[Position, tuple[int, ...]]):
    """The words of batches as they are stored: made once, when they are asked for.

    To make those of 10,000 batches, of 10,000 messages each, takes a tenth of a second, for which
    a store may have a thread.
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
