"""A stored entry: one message, or one batch of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.position import Position

if TYPE_CHECKING:
    from broker.messages.metadata import MessageDigest


class Entry:
    """A stored entry: one message, or one batch of them.

    Attributes:
        ledger_id: Its ledger.
        entry_id: Its number there.
        data: Checksum, metadata and payload as the producer sent them, verbatim.
        message_count: Messages in it: those of its batch, else 1.
        publish_time: When its producer says it was sent, in ms since 1970.
        deliver_at: Not before then, in ms since 1970; 0 for at once.
    """

    __slots__ = ("data", "deliver_at", "entry_id", "ledger_id", "message_count", "publish_time")

    def __init__(self, ledger_id: int, entry_id: int, data: bytes, digest: MessageDigest) -> None:
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.data = data
        self.message_count, self.publish_time, self.deliver_at = digest

    @property
    def position(self) -> Position:
        """Its place in the ledgers of its topic."""
        return Position(self.ledger_id, self.entry_id)
