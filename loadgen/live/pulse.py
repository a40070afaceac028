"""The latest seconds of a run, of totals that arrive about once a second."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from loadgen.clients.latency_buckets import percentile
from loadgen.clients.records import RequestCounters

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_SECONDS = 5.0


class Pulse:
    """Totals, and what they were some seconds ago.

    Mutable state: the totals of the last seconds, each with its moment, and when the first request
    was under way. Bound: totals older than the window are given up, but for one.

    Args:
        now: Reads a clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._seen: deque[tuple[float, RequestCounters]] = deque([(now(), RequestCounters())])
        self._began: float | None = None

    def add(self, counters: RequestCounters) -> None:
        """Take in new totals."""
        at = self._now()
        if self._began is None and counters.started:
            self._began = at
        self._seen.append((at, counters))
        while len(self._seen) > 2 and self._seen[1][0] <= at - WINDOW_SECONDS:
            self._seen.popleft()

    @property
    def totals(self) -> RequestCounters:
        """The latest totals."""
        return self._seen[-1][1]

    @property
    def seconds(self) -> float | None:
        """Seconds since the first request was under way; None before."""
        return None if self._began is None else self._now() - self._began

    @property
    def ended_per_second(self) -> float:
        """Requests that ended, a second, lately."""
        (before, then), (at, now) = self._seen[0], self._seen[-1]
        return (_ended(now) - _ended(then)) / (at - before) if at > before else 0.0

    def percentile(self, share: float) -> float | None:
        """Return a percentile of what was answered lately; None of nothing."""
        then, now = self._seen[0][1], self._seen[-1][1]
        counts = [b - a for a, b in zip(then.latencies, now.latencies, strict=True)]
        return percentile(counts, share)


def _ended(counters: RequestCounters) -> int:
    return counters.answered + counters.refused + counters.lost
