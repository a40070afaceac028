"""One ledger of a topic, as every store keeps it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from broker.messages.managed_ledger import LedgerInfo
from broker.messages.position import Position


class StoredLedger(ABC):
    """The figures of one ledger; stores add where its entries are.

    Attributes:
        ledger_id: Its number.
        opened_at: When it was opened, in ms since 1970; 0 for one that was stored before.
        closed_at: When it was closed, in ms since 1970; 0 while it is open.
        first_rank: Entries of the topic before it, since the topic was opened.
        first_bytes: Bytes of those.
        confirmed: How many of its entries are stored; those behind are being written.
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
        """Return how many entries it has, with those that are being written."""

    @abstractmethod
    def bytes_before(self, number: int) -> int:
        """Return the bytes of the entries before this one; exact for all of its entries."""

    @property
    def last(self) -> Position:
        """Its last stored entry; (its id, -1) if there is none."""
        return Position(self.ledger_id, self.confirmed - 1)

    @property
    def info(self) -> LedgerInfo:
        """The ledger as the interface shows it."""
        size_bytes = self.bytes_before(self.confirmed)
        return LedgerInfo(
            self.ledger_id, self.confirmed, size_bytes, self.closed_at, self.opened_at
        )
