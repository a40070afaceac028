"""The end of the log in memory, so that who reads right behind the writers asks no file."""

from __future__ import annotations

from bisect import bisect_right

TAIL_BYTES = 16 * 1024 * 1024


class LogTail:
    """The bytes that were written last, up to a bound."""

    def __init__(self, max_bytes: int = TAIL_BYTES) -> None:
        self.size_bytes = 0
        self._max_bytes = max_bytes
        self._starts: list[int] = []
        self._pieces: list[bytes] = []

    def add(self, place: int, piece: bytes) -> None:
        """Add what was written at a place, and forget the oldest."""
        self._starts.append(place)
        self._pieces.append(piece)
        self.size_bytes += len(piece)
        count = 0
        while self.size_bytes > self._max_bytes:
            self.size_bytes -= len(self._pieces[count])
            count += 1
        del self._starts[:count], self._pieces[:count]

    def read(self, place: int, size: int) -> bytes | None:
        """Return bytes at a place; None if they are not all here."""
        index = bisect_right(self._starts, place) - 1
        if index < 0:
            return None
        offset = place - self._starts[index]
        piece = self._pieces[index]
        return piece[offset : offset + size] if offset + size <= len(piece) else None
