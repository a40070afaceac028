"""Reads the servers' /metrics/ four times a second while a storm runs.

One thread per server, so that one that answers slowly does not delay the other, and none of it
runs where clients are timed. What is kept: the topic-list limiter's samples, connections, pending
outbound bytes, memory, CPU and descriptors; of a process whose id is known the last three are the
kernel's, read by a thread of their own. A label ``cluster`` is dropped, others stay in the name.
"""

from __future__ import annotations

import math
import re
import threading
import time
import urllib.request
from array import array
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.client import HTTPException
from itertools import pairwise
from typing import TYPE_CHECKING

from loadgen.errors import UsageError
from loadgen.servers.kernel_books import KernelBooks
from loadgen.servers.vocabulary import figure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


SCRAPE_SECONDS = 0.25
_REQUEST_TIMEOUT_SECONDS = 2.0
_LARGEST_PAGE_BYTES = 16 * 1024 * 1024
# How long memory may take to come back after the last client has gone.
_SETTLE_SECONDS = 3.0
# 14 hours of scrapes; from there on every other point of a series is given up, peaks are not.
_MOST_POINTS = 200_000

_OF_THE_PROCESS = (
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
)
_KEPT = (
    "pulsar_broker_topic_list_",
    "pulsar_proxy_topic_list_",
    "pulsar_active_connections",
    "pulsar_proxy_active_connections",
    "pulsar_broker_lookup_pending_requests",
    "floodgate_",
    "jvm_memory_bytes_used",
    "jvm_memory_direct_bytes_used",
    *_OF_THE_PROCESS,
)
# Always 1: what it says is in its labels, and in run.json.
_LABELS_ONLY = "floodgate_server_info"
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? +(\S+)(?: +-?\d+)?$")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')


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


class ProcessWatch:
    """The figures seen of one server. Its threads alone write, until they have ended."""

    def __init__(self, target: ScrapeTarget) -> None:
        self.target = target
        self.series: dict[str, ScrapedSeries] = {}  # one for each kept sample of the page
        self.resident_idle_bytes: int | None = None
        self.resident_peak_bytes: int | None = None
        self._books = None if target.pid is None else KernelBooks(target.process, target.pid)
        # The environment's HTTP proxy has nothing to do with a server that is watched here.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._storm_over = threading.Event()
        watches = [self._watch] if self._books is None else [self._watch, self._read_books]
        self._threads = [
            threading.Thread(target=each, name=f"scrape-{target.process}", daemon=True)
            for each in watches
        ]

    def __enter__(self) -> ProcessWatch:
        """Look once, so that a wrong address is known before the storm; then keep looking.

        Raises:
            UsageError: The page or the process's memory cannot be read.
        """
        try:
            self._scrape()
        except (OSError, ValueError, HTTPException) as error:
            reason = str(getattr(getattr(error, "reason", None), "strerror", None) or error)
            raise UsageError(
                f"{self.target.admin_url}/metrics/ cannot be read ({reason}): "
                f"check --{self.target.process}-admin-url"
            ) from None
        if self._books is not None:
            self.resident_idle_bytes = self._books.reset_high_water_mark()
            self._add(self._books.samples())
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._storm_over.set()
        for thread in self._threads:
            thread.join()
        if self._books is not None:
            # A server that died in the storm took its own books along: the scrapes remain.
            with suppress(UsageError):
                seen = self.peak("process_resident_memory_bytes") or 0
                self.resident_peak_bytes = max(self._books.peak_bytes(), int(seen))

    def restarted(self, pid: int) -> None:
        """Go on with another process in the place of the one that was watched."""
        if self._books is not None:
            self._books = KernelBooks(self.target.process, pid)

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

    def _read_books(self) -> None:
        assert self._books is not None
        while not self._storm_over.wait(SCRAPE_SECONDS):
            with suppress(UsageError):  # it has ended: a gap says so
                self._add(self._books.samples())

    def _watch(self) -> None:
        while not self._storm_over.wait(SCRAPE_SECONDS):
            self._try_scrape()
        give_up_at = time.perf_counter() + _SETTLE_SECONDS
        self._try_scrape()
        while self._holds_memory() and time.perf_counter() < give_up_at:
            threading.Event().wait(SCRAPE_SECONDS)
            self._try_scrape()

    def _try_scrape(self) -> None:
        try:
            self._scrape()
        except (OSError, ValueError, HTTPException):
            return  # a gap in the curve says what there is to say: the page did not come

    def _scrape(self) -> None:
        url = f"{self.target.admin_url.rstrip('/')}/metrics/"
        with self._opener.open(url, timeout=_REQUEST_TIMEOUT_SECONDS) as response:
            page = response.read(_LARGEST_PAGE_BYTES).decode(errors="replace")
        samples = dict(kept_samples(page))
        if self._books is not None:
            for metric in _OF_THE_PROCESS:
                samples.pop(metric, None)
        self._add(samples)

    def _add(self, samples: Mapping[str, float]) -> None:
        at = time.perf_counter()
        for metric, value in samples.items():
            self.series.setdefault(metric, ScrapedSeries()).add(at, value)

    def _holds_memory(self) -> bool:
        prefix = f"pulsar_{self.target.process}_topic_list_"
        return any(self.last(f"{prefix}{kind}_memory_used_bytes") for kind in ("heap", "direct"))


class ServerWatch:
    """Watches every target for the time of a block."""

    def __init__(self, targets: list[ScrapeTarget]) -> None:
        self.processes = {target.process: ProcessWatch(target) for target in targets}
        self._stack = ExitStack()

    def __enter__(self) -> ServerWatch:
        with ExitStack() as stack:
            for process in self.processes.values():
                stack.enter_context(process)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

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


def kept_samples(page: str) -> Iterator[tuple[str, float]]:
    """Yield name and value of each sample of a Prometheus page that is kept; NaN is not."""
    for line in page.splitlines():
        if not is_kept(line):
            continue
        found = _SAMPLE.match(line)
        if found is None:
            continue
        name, labels, text = found.groups()
        value = float(text)
        if not math.isnan(value):
            yield name + other_labels(_LABEL.findall(labels or "")), value


def is_kept(name: str) -> bool:
    """Tell whether a sample is kept, by its name or the line that begins with it."""
    return name.startswith(_KEPT) and not name.startswith(_LABELS_ONLY)


def other_labels(labels: Iterable[tuple[str, str]]) -> str:
    """Return the part of a series' name that its labels are."""
    others = [f'{name}="{value}"' for name, value in labels if name != "cluster"]
    return "{" + ",".join(others) + "}" if others else ""
