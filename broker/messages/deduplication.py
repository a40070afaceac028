"""Deduplication, which stores a message once even if its producer sends it again.

The highest sequence id of each producer name is stored as a property of the cursor
``pulsar.dedup``. These properties cover the entries up to the cursor's position; when the topic is
loaded, later entries are read again.

Source: upstream MessageDeduplication (PIP-6).
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING

from broker.messages.metadata import is_part, parse_metadata
from broker.messages.position import EARLIEST, Position, signed
from broker.messages.stores.managed_ledger import CursorState
from proto.errors import RemoteProtocolError

if TYPE_CHECKING:
    from broker.messages.entry import Entry
    from broker.messages.stores.managed_ledger import ManagedLedger

CURSOR = "pulsar.dedup"
_ENTRIES_AT_ONCE, _BYTES_AT_ONCE = 200, 1024 * 1024


class Verdict(Enum):
    """The result of checking whether a message is a duplicate."""

    NEW = "store it"
    DUPLICATE = "it is stored already"
    UNKNOWN = "it is being stored just now"


def highest_of(sequence_id: int, highest_sequence_id: int) -> int:
    """Return the highest sequence id of a message or batch, given its two unsigned wire fields."""
    return max(signed(sequence_id), signed(highest_sequence_id))


class Deduplication:
    """The highest stored sequence id of each producer of one topic.

    Bound: ``max_producers`` names; above it, the name that published least recently is evicted.

    Args:
        ledger: The topic's ledger.
        entries_interval: The largest number of entries between two snapshots of the sequence ids
            (brokerDeduplicationEntriesInterval).
        max_producers: brokerDeduplicationMaxNumberOfProducers.
        counts_parts: If True, recovery treats a message's first chunk as the whole message, so that
            the last chunk is refused if it arrives after an unload (recorded).

    Attributes:
        enabled: The topic's deduplication policy; if False, every message counts as new.
    """

    def __init__(
        self,
        ledger: ManagedLedger,
        entries_interval: int,
        max_producers: int,
        *,
        counts_parts: bool = False,
    ) -> None:
        self._ledger = ledger
        self._entries_interval = entries_interval
        self._max_producers = max_producers
        self._counts_parts = counts_parts
        self.enabled = False
        self._pushed: dict[str, int] = {}
        self._stored: dict[str, int] = {}
        self._since_snapshot = 0
        self._last = EARLIEST

    def __len__(self) -> int:
        return len(self._stored)

    def __repr__(self) -> str:
        return f"<Deduplication {'on' if self.enabled else 'off'}, {len(self)} producers>"

    # -- on and off ---------------------------------------------------------------------------

    def switch(self, *, on: bool) -> None:
        """Start deduplicating new messages, or stop and forget all sequence ids."""
        if on and not self.enabled:
            self._last = self._ledger.last_confirmed
            self.enabled = True
            self._save()
        elif not on and self.enabled:
            self.enabled = False
            self._pushed.clear()
            self._stored.clear()
            self._ledger.delete_cursor(CURSOR)

    async def recover(self, *, on: bool) -> None:
        """Restore the sequence ids from the ledger while the topic is being loaded."""
        state = self._ledger.cursors.get(CURSOR)
        if state is None or not on:
            if state is not None:
                self._ledger.delete_cursor(CURSOR)
            self.switch(on=on)
            return
        self.enabled = True
        self._stored = {name: int(text) for name, text in state.properties.items()}
        self._last = state.mark_delete
        while entries := await self._read_on():
            for entry in entries:
                self._replay(entry)
            await asyncio.sleep(0)
        self._pushed = dict(self._stored)
        if self._since_snapshot:
            self._save()

    async def _read_on(self) -> list[Entry]:
        following = self._ledger.following(self._last)
        if following > self._ledger.last_confirmed:
            return []
        return await self._ledger.fetch(following, _ENTRIES_AT_ONCE, _BYTES_AT_ONCE)

    def _replay(self, entry: Entry) -> None:
        self._last = entry.position
        self._since_snapshot += 1
        try:
            metadata = parse_metadata(entry.data)
        except RemoteProtocolError:
            return  # Profile pulsar stores unreadable messages.
        if self._counts_parts or not is_part(metadata):
            highest = highest_of(metadata.sequence_id, metadata.highest_sequence_id)
            self._keep(metadata.producer_name, highest)

    # -- one message --------------------------------------------------------------------------

    def last_sequence_id(self, producer: str) -> int:
        """Return the highest stored sequence id of a producer, given its name; -1 if unknown."""
        return self._stored.get(producer, -1)

    def judge(self, producer: str, sequence_id: int) -> Verdict:
        """Return the verdict on a message or batch: new, duplicate, or unknown (being stored).

        Args:
            producer: The producer's name.
            sequence_id: The unsigned sequence id on the wire; for a batch, that of the first
                message.
        """
        number, pushed = signed(sequence_id), self._pushed.get(producer)
        if pushed is None or number > pushed:
            return Verdict.NEW
        stored = self._stored.get(producer)
        return Verdict.DUPLICATE if stored is not None and number <= stored else Verdict.UNKNOWN

    def begun(self, producer: str, highest: int) -> None:
        """Record the sequence id of a message that the ledger accepted but has not stored yet."""
        self._pushed[producer] = highest

    def stored(self, producer: str, highest: int, position: Position) -> None:
        """Record the sequence id of a stored message, and save all sequence ids when due."""
        if not self.enabled:
            return  # Disabled while the message was in flight.
        new_ledger = position.ledger_id != self._last.ledger_id and self._since_snapshot
        if new_ledger or self._since_snapshot >= self._entries_interval:
            # Also before the old ledger may be dropped with its sequence ids.
            self._save()
        self._last = position
        self._since_snapshot += 1
        self._keep(producer, highest)

    def _keep(self, producer: str, highest: int) -> None:
        # Ordered by time of publishing, latest last.
        self._stored[producer] = max(highest, self._stored.pop(producer, -1))
        if len(self._stored) > self._max_producers:
            oldest = next(iter(self._stored))
            if self._pushed.get(oldest) == self._stored.pop(oldest):
                del self._pushed[oldest]  # Otherwise a message of the producer is in flight.

    def lost(self) -> None:
        """Forget the sequence ids of messages that were not stored before the ledger failed."""
        self._pushed = dict(self._stored)

    # -- the snapshot -------------------------------------------------------------------------

    @property
    def unsaved(self) -> bool:
        """True if sequence ids changed since they were last saved."""
        return self.enabled and bool(self._since_snapshot)

    def save(self) -> None:
        """Save the sequence ids in the ledger if they changed since they were last saved."""
        if self.unsaved:
            self._save()

    def _save(self) -> None:
        self._since_snapshot = 0
        kept = {name: str(sequence_id) for name, sequence_id in self._stored.items()}
        self._ledger.save_cursor(CURSOR, CursorState(self._last, properties=kept))
