"""The figures of a message store, for metrics and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.messages.stores.room import StoreBounds, StoreRoom


class WriteFigures:
    """Counts and seconds of the transactions of a database, since it was opened.

    Attributes:
        transactions: Each has what came in a turn, or while the one before was written.
        written_bytes: Bytes of the entries that they stored.
        seconds: How long they took together.
        longest_seconds: The longest.
        failures: Those that failed, of which some were written again.
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
    """The figures of a message store at one moment: what it holds and has done.

    Attributes:
        entries: Entries that are stored.
        data_bytes: Their bytes.
        charged_bytes: With what each costs beside them; compared with the bound.
        bounds: Most of those; 0 is no bound.
        refused: Appends that were refused for want of room.
        file_bytes: Bytes of the database's files; 0 in memory, as all below.
        recent_bytes: What of the entries is in memory too.
        unwritten_bytes: What waits to be written.
        fetched_entries: Entries that were read from the database.
        writing: Its transactions; None in memory.
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
    """Return the figures that all stores have."""
    taken = room.taken
    return StoreFigures(
        entries=taken.entries,
        data_bytes=taken.data_bytes,
        charged_bytes=taken.charged_bytes,
        bounds=room.bounds,
        refused=room.refused,
    )
