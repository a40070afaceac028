"""The figures of a message store, for metrics and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.messages.stores.room import StoreBounds, StoreRoom


class WriteFigures:
    """Counts and seconds, since the store was opened.

    Attributes:
        writes: Calls that wrote; each has what was added in a turn.
        written_bytes: What they wrote.
        write_seconds: How long they took together.
        longest_write_seconds: The longest.
        syncs: Calls after which the disk had a file.
        sync_seconds: How long those took together.
        longest_sync_seconds: The longest.
        failures: Writes and syncs that failed.
    """

    def __init__(self) -> None:
        self.writes = 0
        self.written_bytes = 0
        self.write_seconds = 0.0
        self.longest_write_seconds = 0.0
        self.syncs = 0
        self.sync_seconds = 0.0
        self.longest_sync_seconds = 0.0
        self.failures = 0

    def wrote(self, size_bytes: int, seconds: float) -> None:
        """Count a write."""
        self.writes += 1
        self.written_bytes += size_bytes
        self.write_seconds += seconds
        self.longest_write_seconds = max(self.longest_write_seconds, seconds)

    def synced(self, seconds: float) -> None:
        """Count a sync."""
        self.syncs += 1
        self.sync_seconds += seconds
        self.longest_sync_seconds = max(self.longest_sync_seconds, seconds)


class StoreFigures(NamedTuple):
    """The figures of a message store at one moment: what it holds and has done.

    Attributes:
        entries: Entries that are stored.
        data_bytes: Their bytes.
        charged_bytes: With what each costs beside them; compared with the bound.
        bounds: Most of those; 0 is no bound.
        refused: Appends that were refused for want of room.
        file_bytes: Bytes of the log's files; 0 in memory, as all below.
        files: How many they are.
        unwritten_bytes: What waits to be written.
        deleted_files: Files that were deleted.
        copied_bytes: What lived in them, and was copied.
        writing: Writes and syncs; None in memory.
    """

    entries: int
    data_bytes: int
    charged_bytes: int
    bounds: StoreBounds
    refused: int
    file_bytes: int = 0
    files: int = 0
    unwritten_bytes: int = 0
    deleted_files: int = 0
    copied_bytes: int = 0
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
