"""One ledger of a topic, common to all stores."""

from __future__ import annotations

from abc import ABC, abstractmethod

from broker.messages.managed_ledger import LedgerInfo
from broker.messages.position import Position


class StoredLedger(ABC):
    """The sizes and times of one ledger; stores add the entries.

    Attributes:
        ledger_id: The ledger's number.
        opened_at: Time of opening, in ms since 1970; 0 for a previously stored ledger.
        closed_at: Time of closing, in ms since 1970; 0 while open.
        first_rank: Earlier entries of the topic, since the topic was opened.
        first_bytes: Bytes of the earlier entries.
        confirmed: The number of stored entries; later entries are being written.
    """

    __slots__ = (
        "closed_at",
        "confirmed",
        "first_bytes",
        "first_rank",
        "ledger_id",
        "opened_at",
    )

    def __init__(self, ledger_id: int, opened_at: int = 0) -> None:
        self.ledger_id = ledger_id
        self.opened_at = opened_at
        self.closed_at = 0
        self.first_rank = 0
        self.first_bytes = 0
        self.confirmed = 0

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of entries, including entries being written."""

    @abstractmethod
    def bytes_before(self, number: int) -> int:
        """Return the bytes of all previous entries; exact behind all entries."""

    @property
    def last(self) -> Position:
        """The last stored entry; (ledger id, -1) without entries."""
        return Position(self.ledger_id, self.confirmed - 1)

    @property
    def info(self) -> LedgerInfo:
        """The ledger's public information."""
        size_bytes = self.bytes_before(self.confirmed)
        return LedgerInfo(
            self.ledger_id, self.confirmed, size_bytes, self.closed_at, self.opened_at
        )
