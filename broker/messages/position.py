"""Positions, which identify the entries in the ledgers of a topic."""

from __future__ import annotations

from typing import NamedTuple

_SIGNED_LIMIT, _UNSIGNED_RANGE = 1 << 63, 1 << 64


class Position(NamedTuple):
    """The ledger id and entry id of an entry; positions sort in storage order.

    An ``entry_id`` of -1 stands before the first entry of a ledger.

    Source: upstream Position.
    """

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


EARLIEST = Position(-1, -1)
"""The position before all entries (upstream: MessageId.earliest)."""
LATEST = Position(_SIGNED_LIMIT - 1, _SIGNED_LIMIT - 1)
"""The position after all entries (upstream: MessageId.latest)."""


def from_wire(ledger_id: int, entry_id: int) -> Position:
    """Return a position, given a message id whose unsigned wire fields carry signed numbers."""
    if ledger_id < _SIGNED_LIMIT and entry_id < _SIGNED_LIMIT:
        return Position(ledger_id, entry_id)
    return Position(signed(ledger_id), signed(entry_id))


def to_wire(number: int) -> int:
    """Convert a signed 64-bit number to the unsigned number on the wire: -1 becomes 2^64 - 1."""
    return number % _UNSIGNED_RANGE


def signed(number: int) -> int:
    """Convert an unsigned 64-bit number on the wire to a signed number: 2^64 - 1 becomes -1."""
    return number - _UNSIGNED_RANGE if number >= _SIGNED_LIMIT else number
