"""Retry delays, like the official clients' and with full jitter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

_GO_FIRST_SECONDS, _GO_MOST_SECONDS, _GO_JITTER = 0.1, 60.0, 0.2


class GoBackoff:
    """Delays doubling from 0.1 s to 60 s, each up to a fifth longer at random.

    Args:
        random: Returns numbers from 0 to 1.

    Source: observed traffic.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._seconds = _GO_FIRST_SECONDS

    def next(self) -> float:
        """Return the next delay in seconds."""
        delay = self._seconds
        self._seconds = min(2 * delay, _GO_MOST_SECONDS)
        return delay * (1 + _GO_JITTER * self._random())


class UnreachableRetries:
    """Delays of the Java and C++ clients while no server is reachable, up to a total.

    The last delay is cut, so that all delays add up to the total exactly.

    Args:
        total_seconds: The operation timeout.
        random: Returns numbers from 0 to 1.

    Source: upstream BinaryProtoLookupService, and logs of both clients.
    """

    def __init__(self, total_seconds: float, random: Callable[[], float]) -> None:
        self._backoff = Backoff(0.1, total_seconds, random)
        self._total_seconds = self._left_seconds = total_seconds

    def next(self) -> float | None:
        """Return the next delay in seconds; None at the end of the total."""
        if self._left_seconds <= 0:
            return None
        delay = min(self._backoff.next(), self._left_seconds)
        self._left_seconds -= delay
        return delay

    def reset(self) -> None:
        """Restart for a new request."""
        self._backoff.reset()
        self._left_seconds = self._total_seconds


class FullJitter:
    """Random delays between a minimum and a doubling maximum.

    Spreads the retries of clients refused together evenly; a small jitter would keep them together.

    Args:
        shortest_seconds: The minimum.
        first_seconds: The first maximum.
        most_seconds: The largest maximum.
        random: Returns numbers from 0 to 1.
    """

    def __init__(
        self,
        shortest_seconds: float,
        first_seconds: float,
        most_seconds: float,
        random: Callable[[], float],
    ) -> None:
        self._shortest_seconds = shortest_seconds
        self._first_seconds = self._window_seconds = first_seconds
        self._most_seconds = most_seconds
        self._random = random

    def next(self) -> float:
        """Return the next delay in seconds."""
        window = self._window_seconds
        self._window_seconds = min(2 * window, self._most_seconds)
        return self._shortest_seconds + self._random() * max(0.0, window - self._shortest_seconds)

    def reset(self) -> None:
        """Restart after a success."""
        self._window_seconds = self._first_seconds
