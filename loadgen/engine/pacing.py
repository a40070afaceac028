"""Limits of a client's reading speed: an exact token bucket, with one token per byte.

Over sockets a connection takes tokens from the budget before each read. In virtual time the reads
of a whole stretch are computed in one step, by the same budget.

Over any stretch of time a reader takes at most ``rate * time`` bytes and a burst of at most two
quanta. After a timer that fired late, the next read makes up for it by up to one quantum, so that
the average is the rate and not a little less.
"""

from __future__ import annotations

from math import ceil, floor

from limiter.token_bucket import TokenBucket

# 10 reads a second: coarse enough for 1,000 readers on one core, fine enough that an answer of
# 1 MB at 100 kB/s comes within 1 % of ten seconds.
_QUANTUM_SECONDS = 0.1
_SMALLEST_QUANTUM_BYTES = 256
LARGEST_QUANTUM_BYTES = 256 * 1024
_FUZZ = 1e-9


def quantum_bytes(rate_bytes_per_second: float) -> int:
    """Return the largest number of bytes that a client of a given reading speed reads at once."""
    quantum = int(rate_bytes_per_second * _QUANTUM_SECONDS)
    return min(max(quantum, _SMALLEST_QUANTUM_BYTES), LARGEST_QUANTUM_BYTES)


class ReadBudget(TokenBucket):
    """A token bucket that limits the number of bytes that a reader may read now.

    Args:
        rate_bytes_per_second: The reading speed; unlimited readers have no budget.
        now_seconds: The moment from which tokens accrue.
    """

    def __init__(self, rate_bytes_per_second: float, now_seconds: float) -> None:
        self._quantum = quantum_bytes(rate_bytes_per_second)
        super().__init__(rate_bytes_per_second, 2.0 * self._quantum, now_seconds)
        self.tokens = float(self._quantum)

    def available_bytes(self, now_seconds: float) -> int:
        """Return the number of bytes that may be read at ``now_seconds``; 0 means to pause."""
        return min(int(self.refill(now_seconds) + _FUZZ), LARGEST_QUANTUM_BYTES)

    def pause_seconds(self, now_seconds: float) -> float:
        """Return the number of seconds for which the reader has to pause.

        That is 0 while half of a quantum (the largest number of bytes of a read) may be read.

        With less left, the pause lasts for a whole quantum: tokens accrue continuously, and reading
        byte by byte would be wasteful.
        """
        if self.available_bytes(now_seconds) * 2 >= self._quantum:
            return 0.0
        return self.seconds_until(self._quantum)


# -- reads in virtual time ----


class Reader:
    """A reader in virtual time that reads all bytes immediately.

    Offsets count bytes from the stream's beginning; ``visible`` is the end of the bytes that can be
    read.
    """

    def read_by(self, now: float, read: int, visible: int) -> int:
        """Return the number of bytes read by ``now``, if ``visible`` has been constant so far."""
        return visible

    def moment_of(self, offset: int, now: float, read: int, visible: int) -> float | None:
        """Return when the byte at ``offset`` is read; None if it is beyond the visible bytes."""
        return now if offset <= visible else None


class Never(Reader):
    """A reader in virtual time that never reads."""

    def read_by(self, now: float, read: int, visible: int) -> int:
        """Return the number of bytes read by ``now``, which never increases."""
        return read

    def moment_of(self, offset: int, now: float, read: int, visible: int) -> float | None:
        """Return None, because the byte at ``offset`` is never read."""
        return None


UNLIMITED, NEVER = Reader(), Never()


class Paced(ReadBudget, Reader):
    """A reader in virtual time that reads at the speed that a ReadBudget allows.

    A single division computes many reads.
    """

    def __init__(self, rate: float, now: float) -> None:
        super().__init__(rate, now)
        self._pause = self._quantum / rate
        self._resumes = now  # The next read comes no earlier.

    def read_by(self, now: float, read: int, visible: int) -> int:
        """Return the number of bytes read by ``now``, if ``visible`` has been constant so far."""
        while read < visible and self._resumes <= now + _FUZZ:
            read += self._step(max(self._resumes, self._since), read, visible)
            if self.tokens < 1 and self._resumes <= now:
                steps = floor((now - self._resumes) / self._pause + _FUZZ) + 1
                steps = min(steps, (visible - read) // self._quantum)
                if steps > 0:
                    self._since = self._resumes + (steps - 1) * self._pause
                    self.tokens = 0.0
                    self._resumes = self._since + self._pause
                    read += steps * self._quantum
        if read == visible and self._resumes < now:
            self._resumes = now
        return read

    def _step(self, at: float, read: int, visible: int) -> int:
        """Simulate one read at the moment ``at``; return the number of bytes read."""
        size = min(max(1, self.available_bytes(at)), visible - read)
        self.tokens -= size
        self._resumes = at + self.pause_seconds(at)
        return size

    def moment_of(self, offset: int, now: float, read: int, visible: int) -> float | None:
        """Return when the byte at ``offset`` is read; None if it is beyond the visible bytes."""
        if offset > visible:
            return None
        kept = self.tokens, self._since, self._resumes
        at = max(self._resumes, now)
        while True:
            read += self._step(at, read, visible)
            if read >= offset:
                break
            at = self._resumes
            if self.tokens < 1:
                steps = ceil((offset - read) / self._quantum)
                at += (steps - 1) * self._pause
                break
        self.tokens, self._since, self._resumes = kept
        return at
