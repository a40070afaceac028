"""Delays between attempts, as the official clients make them, and with more chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

_GO_FIRST_SECONDS, _GO_MOST_SECONDS, _GO_JITTER = 0.1, 60.0, 0.2


class GoBackoff:
    """Delays that double from 0.1 s to 60 s, each up to a fifth longer at random.

    Args:
        random: Returns numbers from 0 to 1.

    Source: seen on the wire.
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
    """Delays of the Java and C++ clients while no server can be reached, up to a total.

    The last is cut short, so that all of them take the total exactly.

    Args:
        total_seconds: The operation timeout.
        random: Returns numbers from 0 to 1.

    Source: upstream BinaryProtoLookupService, and seen in logs of both.
    """

    def __init__(self, total_seconds: float, random: Callable[[], float]) -> None:
        self._backoff = Backoff(0.1, total_seconds, random)
        self._total_seconds = self._left_seconds = total_seconds

    def next(self) -> float | None:
        """Return the next delay in seconds; None when all time is used up."""
        if self._left_seconds <= 0:
            return None
        delay = min(self._backoff.next(), self._left_seconds)
        self._left_seconds -= delay
        return delay

    def reset(self) -> None:
        """Begin anew: another question."""
        self._backoff.reset()
        self._left_seconds = self._total_seconds


class FullJitter:
    """Delays anywhere between a shortest and a longest that doubles.

    Many who were refused together come back evenly spread: a delay that is only a little
    shortened at random brings them back together.

    Args:
        shortest_seconds: Nobody comes back sooner.
        first_seconds: The first longest delay.
        most_seconds: The longest of all.
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
        """Begin anew: it worked."""
        self._window_seconds = self._first_seconds
