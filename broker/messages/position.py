"""The place of an entry in the ledgers of a topic."""

from __future__ import annotations

from typing import NamedTuple

_SIGNED_LIMIT, _UNSIGNED_RANGE = 1 << 63, 1 << 64


class Position(NamedTuple):
    """The id of an entry; positions sort in storage order.

    An ``entry_id`` of -1 stands before the first entry of a ledger.

    Source: upstream Position.
    """

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


EARLIEST = Position(-1, -1)
"""Stands before every entry (upstream: MessageId.earliest)."""
LATEST = Position(_SIGNED_LIMIT - 1, _SIGNED_LIMIT - 1)
"""Stands behind every entry (upstream: MessageId.latest)."""


def from_wire(ledger_id: int, entry_id: int) -> Position:
    """Return the position of an id on the wire, whose unsigned fields carry signed numbers."""
    if ledger_id < _SIGNED_LIMIT and entry_id < _SIGNED_LIMIT:
        return Position(ledger_id, entry_id)
    return Position(signed(ledger_id), signed(entry_id))


def to_wire(number: int) -> int:
    """Return the unsigned wire form of a Java long: -1 becomes 2^64 - 1."""
    return number % _UNSIGNED_RANGE


def signed(number: int) -> int:
    """Return the Java long of an unsigned wire number: 2^64 - 1 becomes -1."""
    return number - _UNSIGNED_RANGE if number >= _SIGNED_LIMIT else number
