"""Retry delays that double until an attempt succeeds."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_JITTER = 0.1


class Backoff:
    """Doubling retry delays, shortened slightly at random so that clients do not retry together.

    Args:
        first_seconds: The first and shortest delay; at most ``most_seconds``.
        most_seconds: The longest delay.
        jitter: Returns numbers from 0 to 1; a delay is shortened by up to a tenth times the number.

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
        """Restart with the first delay, after a success."""
        self._next_seconds = self._first_seconds
