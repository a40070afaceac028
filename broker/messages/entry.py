"""A stored entry: one message, or one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.position import Position

if TYPE_CHECKING:
    from broker.messages.metadata import MessageDigest


class Entry:
    """A stored entry: one message, or one batch.

    Attributes:
        ledger_id: The entry's ledger.
        entry_id: The entry's number in the ledger.
        data: Checksum, metadata and payload, verbatim from the producer.
        message_count: Messages in the batch; 1 without a batch.
        publish_time: The producer's publish time, in ms since 1970.
        deliver_at: Earliest delivery, in ms since 1970; 0 for immediately.
    """

    __slots__ = ("data", "deliver_at", "entry_id", "ledger_id", "message_count", "publish_time")

    def __init__(self, ledger_id: int, entry_id: int, data: bytes, digest: MessageDigest) -> None:
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.data = data
        self.message_count, self.publish_time, self.deliver_at = digest

    @property
    def position(self) -> Position:
        """The entry's position in the ledgers of the topic."""
        return Position(self.ledger_id, self.entry_id)
