"""Figures of servers over time, whoever reads them: a scrape, or virtual time."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from loadgen.servers.vocabulary import figure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# 14 hours of scrapes; from there on every other point of a series is given up, peaks are not.
_MOST_POINTS = 200_000


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """One server to watch.

    Attributes:
        process: ``broker`` or ``proxy``.
        admin_url: ``http://host:port`` of its web port.
        pid: Its process id, if it runs on this machine and its memory is to be read exactly.
    """

    process: str
    admin_url: str
    pid: int | None = None


class ScrapedSeries:
    """One value over time: moments (driver's monotonic clock, seconds), values and the peak."""

    def __init__(self) -> None:
        self.at = array("d")
        self.values = array("d")
        self.peak = -math.inf

    def add(self, at: float, value: float) -> None:
        """Append a point."""
        if len(self.at) >= _MOST_POINTS:
            del self.at[1::2], self.values[1::2]
        self.at.append(at)
        self.values.append(value)
        self.peak = max(self.peak, value)


class ProcessSeries:
    """The figures seen of one server.

    Attributes:
        series: One for each kept sample.
        seen_at_the_end: Whether the last values are from when all clients had left.
        again_seconds: Of a server that was restarted meanwhile: how long after that every client
            had been answered again; None if that never was.
    """

    def __init__(self, target: ScrapeTarget) -> None:
        self.target = target
        self.series: dict[str, ScrapedSeries] = {}
        self.resident_idle_bytes: int | None = None
        self.resident_peak_bytes: int | None = None
        self.seen_at_the_end = False
        self.again_seconds: float | None = None

    def add(self, at: float, samples: Mapping[str, float]) -> None:
        """Add what was seen at a moment."""
        for metric, value in samples.items():
            self.series.setdefault(metric, ScrapedSeries()).add(at, value)

    def peak(self, metric: str) -> float | None:
        """Return the largest value seen of a metric."""
        series = self.series.get(metric)
        return None if series is None else series.peak

    def last(self, metric: str) -> float | None:
        """Return the latest value seen of a metric."""
        series = self.series.get(metric)
        return None if series is None else series.values[-1]

    def first(self, metric: str) -> float | None:
        """Return the first value seen of a metric."""
        series = self.series.get(metric)
        return None if series is None else series.values[0]

    def held_bytes(self, kind: str) -> int:
        """Return what is accounted for though all clients have left.

        Of a server that held memory before the run, for clients of others, and of one that could
        no longer be asked, that is 0.

        Args:
            kind: ``heap`` or ``direct``.
        """
        used = self.used_metric(kind)
        if not self.seen_at_the_end or self.first(used):
            return 0
        return int(self.last(used) or 0)

    def used_metric(self, kind: str) -> str:
        """Return the name of the metric of a kind of memory in use."""
        return f"pulsar_{self.target.process}_topic_list_{kind}_memory_used_bytes"

    def rise(self, metric: str) -> float | None:
        """Return by how much a counter rose; one that fell began again from 0."""
        series = self.series.get(metric)
        if series is None:
            return None
        return sum(b - a if b >= a else b for a, b in pairwise(series.values))

    def figures(self) -> dict[str, float]:
        """Return the latest value of each figure, by its name of the vocabulary."""
        latest = {figure_of(metric): series.values[-1] for metric, series in [*self.series.items()]}
        return {figure: value for figure, value in latest.items() if figure is not None}


class WatchedServers:
    """The figures seen of some servers.

    Args:
        processes: Theirs, by name.
    """

    def __init__(self, processes: Mapping[str, ProcessSeries]) -> None:
        self.processes: Mapping[str, ProcessSeries] = dict(processes)

    def points(
        self, seconds_of: Callable[[float], float]
    ) -> Iterator[tuple[float, str, str, float]]:
        """Yield (at_seconds, process, metric, value) of everything seen.

        Args:
            seconds_of: Turns the driver's monotonic clock into seconds since T0.
        """
        for name, process in self.processes.items():
            for metric, series in process.series.items():
                for at, value in zip(series.at, series.values, strict=True):
                    yield seconds_of(at), name, metric, value
