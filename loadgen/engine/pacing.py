"""Limits how fast a client reads: an exact token budget, one token a byte.

Over any stretch of time a reader takes at most ``rate * time`` bytes and one burst of at most
two quanta. Timers that fire late are made up for by the next read, up to one quantum, so that
the average is the rate and not a little less.
"""

from __future__ import annotations

# 10 reads a second: coarse enough for 1,000 readers on one core, fine enough that an answer of
# 1 MB at 100 kB/s comes within 1 % of ten seconds.
_QUANTUM_SECONDS = 0.1
_SMALLEST_QUANTUM_BYTES = 256
LARGEST_QUANTUM_BYTES = 256 * 1024


def quantum_bytes(rate_bytes_per_second: float) -> int:
    """Return what a reader of this speed takes at once."""
    quantum = int(rate_bytes_per_second * _QUANTUM_SECONDS)
    return min(max(quantum, _SMALLEST_QUANTUM_BYTES), LARGEST_QUANTUM_BYTES)


class ReadBudget:
    """Bytes that one reader may take now. Mutable state: the tokens and when they were counted.

    Args:
        rate_bytes_per_second: The reading speed; who reads as fast as it comes has no budget.
        now_seconds: The moment from which tokens accrue.

    Attributes:
        rate: The reading speed.
    """

    def __init__(self, rate_bytes_per_second: float, now_seconds: float) -> None:
        self.rate = rate_bytes_per_second
        self._quantum = quantum_bytes(rate_bytes_per_second)
        self._tokens = float(self._quantum)
        self._counted_at = now_seconds

    def available_bytes(self, now_seconds: float) -> int:
        """Return how many bytes may be read at ``now_seconds``; 0 says: wait."""
        earned = max(0.0, now_seconds - self._counted_at) * self.rate
        self._counted_at = now_seconds
        self._tokens = min(self._tokens + earned, 2.0 * self._quantum)
        return min(int(self._tokens), LARGEST_QUANTUM_BYTES)

    def spend(self, size_bytes: int) -> None:
        """Take the tokens of bytes that were read."""
        self._tokens -= size_bytes

    def pause_seconds(self, now_seconds: float) -> float:
        """Return how long to leave the socket alone; 0 while half a quantum is left.

        A lower budget waits for a whole quantum: tokens come in all the time, and reading them
        byte by byte would cost more than it brings.
        """
        if self.available_bytes(now_seconds) * 2 >= self._quantum:
            return 0.0
        return (self._quantum - self._tokens) / self.rate
