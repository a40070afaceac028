"""The entries that are acknowledged behind a subscription's mark-delete position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.subscriptions.position_set import PositionSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.messages.position import Position


class AcknowledgedEntries:
    """The holes of a subscription: entries acknowledged while an earlier one is not.

    Source: upstream ManagedCursorImpl, individualDeletedMessages.
    """

    def __init__(self) -> None:
        self._entries = PositionSet()

    def __contains__(self, position: object) -> bool:
        return position in self._entries

    @property
    def count(self) -> int:
        """Entries that are in."""
        return self._entries.count

    def add(self, position: Position) -> bool:
        """Note an entry; False if it was acknowledged already."""
        return self._entries.add(position)

    def add_range(self, ledger_id: int, first: int, last: int) -> int:
        """Note entries of a ledger, both ends included; return how many are new."""
        return self._entries.add_range(ledger_id, first, last)

    def discard_through(self, position: Position) -> None:
        """Forget all up to and including a position: the mark-delete stands there now."""
        self._entries.discard_through(position)

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()

    def count_between(self, after: Position, last: Position) -> int:
        """Return how many are acknowledged behind one entry, up to and including another."""
        return self._entries.count_between(after, last)

    def next_gap(self, ledger_id: int, entry_id: int) -> int:
        """Return the first entry of a ledger, not before this one, that is not acknowledged."""
        return self._entries.first_clear(ledger_id, entry_id)

    def ranges(self, most: int | None = None) -> list[tuple[int, int, int]]:
        """Return ledger, first and last entry of each unbroken row, in order; ``most`` at most."""
        return self._entries.ranges(most)

    def count_ranges(self) -> int:
        """Return how many unbroken rows these are."""
        return self._entries.count_ranges()

    def as_bitmaps(self) -> dict[int, bytes]:
        """Return what is stored: for each ledger a bitmap, lowest bit of the first byte first."""
        return self._entries.as_bitmaps()

    @staticmethod
    def of_bitmaps(bitmaps: Mapping[int, bytes]) -> AcknowledgedEntries:
        """Return what was stored."""
        acknowledged = AcknowledgedEntries()
        acknowledged._entries.fill(bitmaps)
        return acknowledged
