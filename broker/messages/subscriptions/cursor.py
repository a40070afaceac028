"""Cursors, which record a subscription's acknowledgements and its next entry to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.position import EARLIEST, Position
from broker.messages.stores.managed_ledger import CursorState
from broker.messages.subscriptions.batch_acks import BatchAcks
from broker.messages.subscriptions.position_set import PositionSet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.messages.stores.managed_ledger import ManagedLedger


class ManagedCursor:
    """The acknowledgements and read position of one subscription (upstream: ManagedCursor).

    All entries up to the mark-delete position are acknowledged. After it, single entries may be
    acknowledged completely or, in batches, partly.

    Attributes:
        mark_delete: All entries up to this position are acknowledged.
        read_position: The next entry to read.
        acknowledged: The completely acknowledged entries after the mark-delete position (upstream:
            individualDeletedMessages).
        batches: Partly acknowledged entries.
        properties: The subscription's properties, readable by REST.
        durable: True if the ledger stores the cursor's state.
        changed: True if the state has changed since it was stored.
    """

    def __init__(
        self,
        ledger: ManagedLedger,
        name: str,
        mark_delete: Position,
        *,
        durable: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._ledger = ledger
        self.name = name
        self.durable = durable
        self.mark_delete = mark_delete
        self.read_position = ledger.following(mark_delete)
        self.acknowledged = PositionSet()
        self.batches = BatchAcks()
        self.properties = dict(properties or {})
        self.changed = True

    @classmethod
    def recovered(cls, ledger: ManagedLedger, name: str, state: CursorState) -> ManagedCursor:
        """Restore a cursor from its stored state."""
        cursor = cls(ledger, name, state.mark_delete, properties=state.properties)
        # Ignore entries lost with damaged files.
        holes = {one: _within(ledger, one, bits) for one, bits in state.acknowledged.items()}
        cursor.acknowledged = PositionSet.of_bitmaps(holes)
        cursor.batches = BatchAcks.of_mapping(state.batches)
        # Ignore ledgers dropped after the state was saved.
        first = cursor.first_left
        cursor.acknowledged.discard_through(Position(first.ledger_id, first.entry_id - 1))
        cursor.batches.discard_through(Position(first.ledger_id, first.entry_id - 1))
        cursor._advance()
        cursor.rewind()
        cursor.changed = False
        return cursor

    def save(self) -> None:
        """Store the cursor's state in the ledger, if it changed since it was stored."""
        if self.durable and self.changed:
            self._ledger.save_cursor(self.name, self.state)
        self.changed = False

    @property
    def state(self) -> CursorState:
        """The cursor's state in the form that the ledger stores."""
        return CursorState(
            self.mark_delete,
            self.acknowledged.as_bitmaps(),
            self.batches.as_mapping(),
            dict(self.properties),
        )

    # -- unacknowledged entries ---------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """The number of entries that are not completely acknowledged."""
        ledger = self._ledger
        behind = ledger.count(self.mark_delete, ledger.last_confirmed)
        return behind - self.acknowledged.count

    @property
    def backlog_bytes(self) -> int:
        """The approximate bytes of the entries that are not completely acknowledged."""
        ledger = self._ledger
        behind = ledger.count(self.mark_delete, ledger.last_confirmed)
        if not behind:
            return 0
        size = ledger.size_between(self.mark_delete, ledger.last_confirmed)
        return size * (behind - self.acknowledged.count) // behind

    @property
    def first_left(self) -> Position:
        """The position of the first unacknowledged entry, or of the next new entry."""
        return self._ledger.following(self.mark_delete)

    def nth_left(self, place: int) -> Position | None:
        """Return the position of the n-th unacknowledged entry; None if there are fewer.

        The first is number 1.
        """
        if place > self.backlog:
            return None
        ledger, acknowledged = self._ledger, self.acknowledged
        # Binary search: stepping over each acknowledged entry would take minutes.
        low, high = place, place + acknowledged.count
        while low < high:
            middle = (low + high) // 2
            passed = acknowledged.count_between(
                self.mark_delete, ledger.at(self.mark_delete, middle)
            )
            if middle - passed < place:
                low = middle + 1
            else:
                high = middle
        return ledger.at(self.mark_delete, low)

    @property
    def at_end(self) -> bool:
        """True if all stored entries have been read."""
        return self.read_position > self._ledger.last_confirmed

    def is_acknowledged(self, position: tuple[int, int]) -> bool:
        """Return True if an entry is completely acknowledged."""
        return position <= self.mark_delete or position in self.acknowledged

    def rewind(self) -> None:
        """Set the read position to the first unacknowledged entry."""
        self.read_position = self.first_left

    def pass_acknowledged(self, entries: int) -> None:
        """Move the read position over the acknowledged entries that directly follow it.

        The move skips a multiple of ``entries`` entries, as if by reads of that size.
        """
        at = self.read_position
        passed = self.acknowledged.first_clear(*at) - at.entry_id
        if passed >= entries:
            last = Position(at.ledger_id, at.entry_id + passed - passed % entries - 1)
            self.read_position = self._ledger.following(last)

    # -- acknowledging ------------------------------------------------------------------------

    def holds(self, position: Position) -> bool:
        """Return True if an entry is stored and not completely acknowledged."""
        if self.is_acknowledged(position) or position > self._ledger.last_confirmed:
            return False
        return self._ledger.holds(position)

    def acknowledge(self, position: Position) -> None:
        """Acknowledge an entry for which ``holds`` returns True."""
        self.changed = True
        self.batches.discard(position)
        if self._is_next(position):
            self.mark_delete = position
            if self.acknowledged.count:
                self._advance()
            if self.read_position <= self.mark_delete:
                self.rewind()  # No read needed: acknowledged before.
        else:
            self.acknowledged.add(position)

    def _is_next(self, position: Position) -> bool:
        ledger_id, entry_id = self.mark_delete
        if position.ledger_id == ledger_id:
            return position.entry_id == entry_id + 1
        return position == self._ledger.following(self.mark_delete)

    def acknowledge_part(
        self, position: Position, size: int, ack_set: Sequence[int]
    ) -> tuple[int, bool]:
        """Acknowledge single messages of a batch for which ``holds`` returns True.

        Args:
            position: The entry.
            size: Messages in the batch.
            ack_set: The words of the bit set of the remaining messages.

        Returns:
            The number of newly acknowledged messages, and True if no message remains.
        """
        self.changed = True
        newly, done = self.batches.acknowledge(position, size, ack_set)
        if done:
            self.acknowledge(position)
        return newly, done

    def acknowledge_through(self, position: Position, *, compacted: bool = False) -> bool:
        """Acknowledge all entries up to the given entry.

        If the entry does not exist or was passed before, do nothing and return False.

        Args:
            position: The entry; (ledger, -1) for all entries before the ledger.
            compacted: A compacted entry, whose ledger may be dropped.
        """
        ledger = self._ledger
        # Compacted entries of dropped ledgers may precede the first stored entry.
        at_start = compacted and self.mark_delete == ledger.preceding(EARLIEST)
        if position > ledger.last_confirmed or (position <= self.mark_delete and not at_start):
            return False
        there = Position(position.ledger_id, 0) if position.entry_id == -1 else position
        if not compacted and not ledger.holds(there):
            return False
        self._move_to(position)
        return True

    def _move_to(self, position: Position) -> None:
        self.changed = True
        self.mark_delete = position
        self.acknowledged.discard_through(position)
        self.batches.discard_through(position)
        if self.acknowledged.count:
            self._advance()
        self.read_position = max(self.read_position, self.first_left)

    def _advance(self) -> None:
        """Move the mark-delete position over the acknowledged entries that directly follow it."""
        ledger, acknowledged = self._ledger, self.acknowledged
        start, last = self.mark_delete, ledger.last_confirmed
        following = ledger.following(self.mark_delete)
        while following <= last and following in acknowledged:
            gap = acknowledged.first_clear(*following)
            self.mark_delete = Position(following.ledger_id, gap - 1)
            following = ledger.following(self.mark_delete)
        if self.mark_delete != start:
            acknowledged.discard_through(self.mark_delete)

    # -- moving -------------------------------------------------------------------------------

    def reset(self, first: Position) -> None:
        """Make the entry at a position the next one to read, even if it was acknowledged (SEEK).

        All later entries count as unacknowledged. A position after the last entry resets to the
        end.
        """
        ledger = self._ledger
        self.changed = True
        self.acknowledged.clear()
        self.batches.clear()
        last = ledger.last_confirmed
        self.mark_delete = last if first > last else ledger.preceding(first)
        self.rewind()

    def skip(self, count: int) -> None:
        """Acknowledge the given number of oldest unacknowledged entries, or all if fewer remain."""
        if count <= 0:
            return
        self.skip_through(self.nth_left(count) or self._ledger.last_confirmed)

    def skip_through(self, position: Position) -> None:
        """Acknowledge all existing entries up to a position."""
        position = min(position, self._ledger.last_confirmed)
        if position > self.mark_delete:
            self._move_to(position)


def _within(ledger: ManagedLedger, ledger_id: int, bitmap: bytes) -> bytes:
    count = ledger.count(Position(ledger_id, -1), Position(ledger_id, 8 * len(bitmap)))
    if count >= 8 * len(bitmap):
        return bitmap
    kept = int.from_bytes(bitmap, "little") & (1 << count) - 1
    return kept.to_bytes(-(-count // 8), "little")
