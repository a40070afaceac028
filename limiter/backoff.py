"""Delays between attempts, longer each time until one succeeds."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_JITTER = 0.1


class Backoff:
    """Delays that double, a little shortened at random so that many do not come back together.

    Args:
        first_seconds: The first delay, and the shortest; at most the longest.
        most_seconds: The longest.
        jitter: Returns numbers from 0 to 1; how much of a tenth a delay is shortened by.

    Source: upstream Backoff.
    """

    def __init__(
        self,
        first_seconds: float = 0.1,
        most_seconds: float = 25.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._first_seconds = self._next_seconds = min(first_seconds, most_seconds)
        self._most_seconds = most_seconds
        self._jitter = jitter

    def next(self) -> float:
        """Return the next delay in seconds."""
        delay = self._next_seconds
        self._next_seconds = min(2 * delay, self._most_seconds)
        return max(self._first_seconds, delay * (1 - _MOST_JITTER * self._jitter()))

    def reset(self) -> None:
        """Begin anew: it worked."""
        self._next_seconds = self._first_seconds
