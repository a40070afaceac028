"""Reads the servers' /metrics/ four times a second while a storm runs.

One thread per server, so that one that answers slowly does not delay the other, and none of it
runs where clients are timed. What is kept: the topic-list limiter's samples, connections, pending
outbound bytes, memory and CPU. A label ``cluster`` is dropped, others stay in the name.
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
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SCRAPE_SECONDS = 0.25
MEMORY_KINDS = ("heap", "direct")
_REQUEST_TIMEOUT_SECONDS = 2.0
_LARGEST_PAGE_BYTES = 16 * 1024 * 1024
# How many scrapes memory may take to come back after the last client has gone.
_SETTLE_SCRAPES = 24
# 14 hours of scrapes; from there on every other point of a series is given up, peaks are not.
_MOST_POINTS = 200_000

_KEPT = (
    "pulsar_broker_topic_list_",
    "pulsar_proxy_topic_list_",
    "pulsar_active_connections",
    "pulsar_proxy_active_connections",
    "pulsar_broker_lookup_pending_requests",
    "floodgate_",
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
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
    """The figures seen of one server. Its thread alone writes, until it has ended."""

    def __init__(self, target: ScrapeTarget) -> None:
        self.target = target
        self.series: dict[str, ScrapedSeries] = {}  # one for each kept sample of the page
        self.resident_idle_bytes: int | None = None
        self.resident_peak_bytes: int | None = None
        self._seen_at_the_end = False
        self._memory = None if target.pid is None else ResidentMemory(target.process, target.pid)
        # The environment's HTTP proxy has nothing to do with a server that is watched here.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._storm_over = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, name=f"scrape-{target.process}", daemon=True
        )

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
        if self._memory is not None:
            self.resident_idle_bytes = self._memory.reset_high_water_mark()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._storm_over.set()
        self._thread.join()
        if self._memory is not None:
            # A server that died in the storm took its own books along: the scrapes remain.
            with suppress(UsageError):
                self.resident_peak_bytes = self._memory.peak_bytes()

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

    def _watch(self) -> None:
        while not self._storm_over.wait(SCRAPE_SECONDS):
            self._try_scrape()
        for _ in range(_SETTLE_SCRAPES):
            self._seen_at_the_end = self._try_scrape() or self._seen_at_the_end
            if not self._holds_memory():
                return
            threading.Event().wait(SCRAPE_SECONDS)

    def _try_scrape(self) -> bool:
        """Scrape; a gap in the curve says what there is to say where the page does not come."""
        try:
            self._scrape()
        except (OSError, ValueError, HTTPException):
            return False
        return True

    def _scrape(self) -> None:
        url = f"{self.target.admin_url.rstrip('/')}/metrics/"
        with self._opener.open(url, timeout=_REQUEST_TIMEOUT_SECONDS) as response:
            page = response.read(_LARGEST_PAGE_BYTES).decode(errors="replace")
        at = time.perf_counter()
        for metric, value in kept_samples(page):
            self.series.setdefault(metric, ScrapedSeries()).add(at, value)

    def _holds_memory(self) -> bool:
        return any(self.last(self._used(kind)) for kind in MEMORY_KINDS)

    def _used(self, kind: str) -> str:
        return f"pulsar_{self.target.process}_topic_list_{kind}_memory_used_bytes"

    def held_bytes(self, kind: str) -> int:
        """Return what is accounted for though all clients have left.

        Of a server that held memory before the run, for clients of others, and of one that could
        no longer be asked, that is 0.
        """
        used = self._used(kind)
        if not self._seen_at_the_end or self.first(used):
            return 0
        return int(self.last(used) or 0)


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
        if not line.startswith(_KEPT) or line.startswith(_LABELS_ONLY):
            continue
        found = _SAMPLE.match(line)
        if found is None:
            continue
        name, labels, text = found.groups()
        value = float(text)
        if not math.isnan(value):
            yield name + _other_labels(labels or ""), value


def _other_labels(labels: str) -> str:
    others = [f'{name}="{value}"' for name, value in _LABEL.findall(labels) if name != "cluster"]
    return "{" + ",".join(others) + "}" if others else ""


_RESET_HIGH_WATER_MARK = "5"
_LINE = re.compile(r"^(VmRSS|VmHWM):\s+(\d+) kB$", re.MULTILINE)


class ResidentMemory:
    """One process. Units: bytes.

    Args:
        process: What it is called in messages, ``broker`` or ``proxy``.
        pid: Its process id.
    """

    def __init__(self, process: str, pid: int, proc: Path = Path("/proc")) -> None:
        self._process = process
        self._pid = pid
        self._directory = proc / str(pid)

    def reset_high_water_mark(self) -> int:
        """Begin a new peak and return what is resident now.

        Raises:
            UsageError: There is no such process here, or it belongs to somebody else.
        """
        try:
            (self._directory / "clear_refs").write_text(_RESET_HIGH_WATER_MARK)
        except OSError as error:
            raise self._unreadable(error) from None
        return self._read("VmRSS")

    def peak_bytes(self) -> int:
        """Return the most that was resident since the reset.

        Raises:
            UsageError: The process has ended.
        """
        return self._read("VmHWM")

    def _read(self, field: str) -> int:
        try:
            status = (self._directory / "status").read_text()
        except OSError as error:
            raise self._unreadable(error) from None
        found = {name: int(kilobytes) * 1024 for name, kilobytes in _LINE.findall(status)}
        if field not in found:
            raise UsageError(f"process {self._pid} ({self._process}) has ended")
        return found[field]

    def _unreadable(self, error: OSError) -> UsageError:
        return UsageError(
            f"the memory of process {self._pid} (--{self._process}-pid) cannot be read: "
            f"{error.strerror}; name a process of yours on this machine, or leave it out"
        )
