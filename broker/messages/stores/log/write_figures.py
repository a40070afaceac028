"""How often and how long the log was written and synced."""

from __future__ import annotations


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
