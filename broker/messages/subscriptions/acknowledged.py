"""Acknowledged entries behind a subscription's mark-delete position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.subscriptions.position_set import PositionSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.messages.position import Position


class AcknowledgedEntries:
    """The holes of a subscription: entries acknowledged before an earlier entry.

    Source: upstream ManagedCursorImpl, individualDeletedMessages.
    """

    def __init__(self) -> None:
        self._entries = PositionSet()

    def __contains__(self, position: object) -> bool:
        return position in self._entries

    @property
    def count(self) -> int:
        """Number of acknowledged entries."""
        return self._entries.count

    def add(self, position: Position) -> bool:
        """Add an entry; return False if already acknowledged."""
        return self._entries.add(position)

    def add_range(self, ledger_id: int, first: int, last: int) -> int:
        """Add entries of a ledger, both ends included; return the number of new entries."""
        return self._entries.add_range(ledger_id, first, last)

    def discard_through(self, position: Position) -> None:
        """Forget all up to and including a position, the new mark-delete."""
        self._entries.discard_through(position)

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()

    def count_between(self, after: Position, last: Position) -> int:
        """Return the number of acknowledged entries behind one entry, up to another."""
        return self._entries.count_between(after, last)

    def next_gap(self, ledger_id: int, entry_id: int) -> int:
        """Return the first unacknowledged entry of a ledger from an entry on."""
        return self._entries.first_clear(ledger_id, entry_id)

    def ranges(self, most: int | None = None) -> list[tuple[int, int, int]]:
        """Return ledger, first and last entry of each unbroken row, in order; ``most`` at most."""
        return self._entries.ranges(most)

    def count_ranges(self) -> int:
        """Return the number of unbroken rows."""
        return self._entries.count_ranges()

    def as_bitmaps(self) -> dict[int, bytes]:
        """Return the stored form: for each ledger a bitmap, lowest bit of the first byte first."""
        return self._entries.as_bitmaps()

    @staticmethod
    def of_bitmaps(bitmaps: Mapping[int, bytes]) -> AcknowledgedEntries:
        """Return the entries of the stored form."""
        acknowledged = AcknowledgedEntries()
        acknowledged._entries.fill(bitmaps)
        return acknowledged
