"""Readers: how much of what lies in the kernel a client has read at a moment.

A reader of fixed speed reads as :class:`~loadgen.engine.pacing.ReadBudget` lets a real client
read, a quantum at a time; many quanta in a row cost one division.
"""

from __future__ import annotations

from math import ceil, floor

from loadgen.engine.pacing import LARGEST_QUANTUM_BYTES, quantum_bytes

_FUZZ = 1e-9


class Reader:
    """Reads everything at once. All offsets count from the stream's beginning."""

    __slots__ = ()

    def read_by(self, now: float, read: int, visible: int) -> int:
        """Return what has been read by now, where ``visible`` has not changed since the last."""
        del now, read
        return visible

    def moment_of(self, offset: int, now: float, read: int, visible: int) -> float | None:
        """Return when ``offset`` will have been read; None for never, as things are."""
        del read
        return now if offset <= visible else None


class Never(Reader):
    """Reads nothing."""

    __slots__ = ()

    def read_by(self, now: float, read: int, visible: int) -> int:
        """See Reader.read_by."""
        del now, visible
        return read

    def moment_of(self, offset: int, now: float, read: int, visible: int) -> float | None:
        """See Reader.moment_of."""
        del offset, now, read, visible
        return None


UNLIMITED, NEVER = Reader(), Never()


class Paced(Reader):
    """Reads at most so many bytes a second: see ReadBudget.

    Args:
        rate: Bytes a second.
        now: The moment from which tokens accrue.
    """

    __slots__ = ("_at", "_pause", "_quantum", "_rate", "_resumes", "_tokens")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._quantum = quantum_bytes(rate)
        self._pause = self._quantum / rate
        self._tokens = float(self._quantum)
        self._at = now  # the moment at which the tokens were counted
        self._resumes = now  # reads no earlier than this

    def read_by(self, now: float, read: int, visible: int) -> int:
        """See Reader.read_by."""
        while read < visible and self._resumes <= now + _FUZZ:
            read += self._step(max(self._resumes, self._at), read, visible)
            if self._tokens < 1 and self._resumes <= now:
                steps = floor((now - self._resumes) / self._pause + _FUZZ) + 1
                steps = min(steps, (visible - read) // self._quantum)
                if steps > 0:
                    self._at = self._resumes + (steps - 1) * self._pause
                    self._tokens = 0.0
                    self._resumes = self._at + self._pause
                    read += steps * self._quantum
        if read == visible and self._resumes < now:
            self._resumes = now
        return read

    def _step(self, at: float, read: int, visible: int) -> int:
        """Read once; return how much."""
        tokens = min(self._tokens + (at - self._at) * self._rate, 2.0 * self._quantum)
        size = min(max(1, min(int(tokens + _FUZZ), LARGEST_QUANTUM_BYTES)), visible - read)
        self._tokens, self._at = tokens - size, at
        if int(self._tokens) * 2 < self._quantum:
            self._resumes = at + (self._quantum - self._tokens) / self._rate
        else:
            self._resumes = at
        return size

    def moment_of(self, offset: int, now: float, read: int, visible: int) -> float | None:
        """See Reader.moment_of."""
        if offset > visible:
            return None
        kept = self._tokens, self._at, self._resumes
        at = max(self._resumes, now)
        while True:
            read += self._step(at, read, visible)
            if read >= offset:
                break
            at = self._resumes
            if self._tokens < 1:
                steps = ceil((offset - read) / self._quantum)
                at += (steps - 1) * self._pause
                break
        self._tokens, self._at, self._resumes = kept
        return at
