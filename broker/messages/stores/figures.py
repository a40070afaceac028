"""The figures of a message store, for metrics and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.messages.stores.room import StoreBounds, StoreRoom


class WriteFigures:
    """Counts and durations of a database's transactions since opening.

    Attributes:
        transactions: Each has the writes of a turn, or of the duration of the previous transaction.
        written_bytes: Bytes of the stored entries.
        seconds: Total duration.
        longest_seconds: The longest duration.
        failures: Failed transactions, including later retried ones.
    """

    def __init__(self) -> None:
        self.transactions = 0
        self.written_bytes = 0
        self.seconds = 0.0
        self.longest_seconds = 0.0
        self.failures = 0

    def wrote(self, size_bytes: int, seconds: float) -> None:
        """Count a transaction."""
        self.transactions += 1
        self.written_bytes += size_bytes
        self.seconds += seconds
        self.longest_seconds = max(self.longest_seconds, seconds)


class StoreFigures(NamedTuple):
    """The contents and statistics of a message store at one moment.

    Attributes:
        entries: Stored entries.
        data_bytes: Bytes of the entries.
        charged_bytes: Bytes including overhead; compared with the bound.
        bounds: Most bytes; 0 is no bound.
        refused: Appends refused for lack of capacity.
        file_bytes: Bytes of the database's files; 0 in memory, as all below.
        recent_bytes: Bytes of entries also in memory.
        unwritten_bytes: Bytes waiting to be written.
        fetched_entries: Entries read from the database.
        writing: The transactions; None in memory.
    """

    entries: int
    data_bytes: int
    charged_bytes: int
    bounds: StoreBounds
    refused: int
    file_bytes: int = 0
    recent_bytes: int = 0
    unwritten_bytes: int = 0
    fetched_entries: int = 0
    writing: WriteFigures | None = None


def room_figures(room: StoreRoom) -> StoreFigures:
    """Return the figures common to all stores."""
    taken = room.taken
    return StoreFigures(
        entries=taken.entries,
        data_bytes=taken.data_bytes,
        charged_bytes=taken.charged_bytes,
        bounds=room.bounds,
        refused=room.refused,
    )
