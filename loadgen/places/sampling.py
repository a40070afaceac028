"""Samples of servers while a run lasts: their /metrics/ and memory, four times a second.

One thread per server, so that one that answers slowly does not delay the other, and none of it
runs where clients are timed. What is kept: the topic-list limiter's samples, connections, pending
outbound bytes, memory, CPU and descriptors; of a process whose id is known the last three are the
kernel's, read by a thread of their own: a server that is busy answers late, ``/proc`` at once. A
label ``cluster`` is dropped, others stay in the name.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from array import array
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.access import WebPages
from loadgen.errors import UsageError
from loadgen.results.tables import write_table
from loadgen.results.vocabulary import figure_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SAMPLE_SECONDS = 0.25
REQUEST_TIMEOUT_SECONDS = 2.0
LARGEST_PAGE_BYTES = 16 * 1024 * 1024
_SETTLE_SAMPLES = 24
"""So many may pass until memory has come back after the last client has gone."""
_MOST_POINTS = 200_000
"""14 hours of samples; from there on every other point of a series is given up."""
_OF_THE_PROCESS = (
    "process_resident_memory_bytes",
    "process_resident_memory_high_water_bytes",
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
LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
UNREADABLE = (OSError, ValueError, HTTPException)
_RESET_HIGH_WATER_MARK = "5"
_MEMORY = re.compile(r"^(VmRSS|VmHWM):\s+(\d+) kB$", re.MULTILINE)
_OPEN_FILES = re.compile(r"^Max open files\s+(\d+)", re.MULTILINE)
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat behind the name, which may hold anything: user and system time.
_USER_TIME, _SYSTEM_TIME = 11, 12


class Samples:
    """What was seen of some servers over time, whoever looked.

    Mutable state: the points of each metric, by process.

    Attributes:
        seen_at_the_end: Processes whose last samples are from when all clients had left.
    """

    def __init__(self, processes: Iterable[str]) -> None:
        self._series: dict[str, dict[str, tuple[array[float], array[float]]]] = {
            process: {} for process in processes
        }
        self.seen_at_the_end: set[str] = set()

    @property
    def processes(self) -> tuple[str, ...]:
        """The servers' names."""
        return tuple(self._series)

    def add(self, process: str, at: float, samples: Mapping[str, float]) -> None:
        """Add what was seen of a server at a moment of some clock, in seconds."""
        series = self._series[process]
        for metric, value in samples.items():
            moments, values = series.setdefault(metric, (array("d"), array("d")))
            if len(moments) >= _MOST_POINTS:
                del moments[1::2], values[1::2]
            moments.append(at)
            values.append(value)

    def series(self, process: str, metric: str) -> tuple[list[float], list[float]]:
        """Return the moments and values of a metric; none if it was not seen."""
        moments, values = self._series[process].get(metric, ((), ()))
        return list(moments), list(values)

    def figures(self, process: str) -> dict[str, float]:
        """Return the latest value of each figure of a server, by its name of the vocabulary."""
        series = [*self._series[process].items()]
        latest = {figure_of(metric): values[-1] for metric, (_, values) in series}
        return {figure: value for figure, value in latest.items() if figure is not None}

    def holds_memory(self, process: str) -> bool:
        """Tell whether a server accounts for lists now."""
        figures = self.figures(process)
        return any(figures.get(f"{kind}.used") for kind in ("heap", "direct"))

    def write(self, directory: str, run: str, t0: float, t0_epoch_seconds: float) -> None:
        """Write all of them as a table.

        Args:
            directory: The run's.
            run: Its name.
            t0: The agreed start on the clock of the samples.
            t0_epoch_seconds: The same on the wall clock.
        """
        rows = [
            (process, metric, moment - t0, value)
            for process, series in self._series.items()
            for metric, (moments, values) in series.items()
            for moment, value in zip(moments, values, strict=True)
        ]
        names = ("process", "metric", "seconds", "value")
        columns: dict[str, list[object]] = {
            name: [row[place] for row in rows] for place, name in enumerate(names)
        }
        columns["run"] = [run] * len(rows)
        columns["figure"] = [figure_of(row[1]) for row in rows]
        columns["at"] = [round((t0_epoch_seconds + row[2]) * 1e6) for row in rows]
        write_table(directory, "samples", 0, columns)


@dataclass(frozen=True, slots=True)
class Target:
    """One server to sample.

    Attributes:
        process: ``broker`` or ``proxy``.
        admin_url: ``http://host:port`` of its web port.
        pid: Its process id, if it runs on this machine and its memory is to be read exactly.
    """

    process: str
    admin_url: str
    pid: int | None = None


class ServerWatch(Samples):
    """Samples every target for the time of a block, on the clock of ``time.perf_counter``."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self._watches = {each.process: _TargetWatch(each, self) for each in targets}
        super().__init__(self._watches)
        self._stack = ExitStack()

    def __enter__(self) -> ServerWatch:
        with ExitStack() as stack:
            for watch in self._watches.values():
                stack.enter_context(watch)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def restarted(self, process: str, pid: int) -> None:
        """Go on with another process in the place of the one that was sampled."""
        if process in self._watches:
            self._watches[process].restarted(pid)


class _TargetWatch:
    """The threads that sample one server. Mutable state: its books, None while they are closed."""

    def __init__(self, target: Target, samples: Samples) -> None:
        self._target = target
        self._samples = samples
        self._books = self._books_of(target.pid)
        self._pages = WebPages()
        self._over = threading.Event()
        watches = [self._watch] if target.pid is None else [self._watch, self._read_books]
        self._threads = [
            threading.Thread(target=each, name=f"sample-{target.process}", daemon=True)
            for each in watches
        ]

    def __enter__(self) -> None:
        """Look once, so that a wrong address is known before the run; then keep looking.

        Raises:
            UsageError: The page or the process's memory cannot be read.
        """
        target = self._target
        try:
            self._scrape()
        except UNREADABLE as error:
            reason = str(getattr(getattr(error, "reason", None), "strerror", None) or error)
            raise UsageError(
                f"{target.admin_url}/metrics/ cannot be read ({reason}): "
                f"check --admin-url {target.process}=..."
            ) from None
        if self._books is not None:
            self._books.reset_high_water_mark()
            self._add(self._books.samples())
        for thread in self._threads:
            thread.start()

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def restarted(self, pid: int) -> None:
        if self._target.pid is not None:
            self._books = self._books_of(pid)

    def _books_of(self, pid: int | None) -> KernelBooks | None:
        return None if pid is None else KernelBooks(self._target.process, pid)

    def _read_books(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            books = self._books
            try:
                self._add({} if books is None else books.samples())
            except UsageError:
                # It has ended. Another may answer at its address by now, and tells of itself.
                if self._books is books:
                    self._books = None

    def _watch(self) -> None:
        process = self._target.process
        while not self._over.wait(SAMPLE_SECONDS):
            self._try_scrape()
        for _ in range(_SETTLE_SAMPLES):
            if self._try_scrape():
                self._samples.seen_at_the_end.add(process)
            if not self._samples.holds_memory(process):
                return
            threading.Event().wait(SAMPLE_SECONDS)

    def _try_scrape(self) -> bool:
        """Scrape; a gap in the curve says what there is to say where the page does not come."""
        try:
            self._scrape()
        except UNREADABLE:
            return False
        return True

    def _scrape(self) -> None:
        url = f"{self._target.admin_url.rstrip('/')}/metrics/"
        page = self._pages.read(url, REQUEST_TIMEOUT_SECONDS, LARGEST_PAGE_BYTES)
        kept = dict(kept_samples(page))
        # What the books tell, nobody else has to.
        told = () if self._books is None else _OF_THE_PROCESS
        self._add({metric: value for metric, value in kept.items() if metric not in told})

    def _add(self, samples: Mapping[str, float]) -> None:
        self._samples.add(self._target.process, time.perf_counter(), samples)


def kept_samples(page: str) -> Iterator[tuple[str, float]]:
    """Yield name and value of each sample of a Prometheus page that is kept; NaN is not."""
    for line in page.splitlines():
        found = _SAMPLE.match(line) if is_kept(line) else None
        if found is not None and not math.isnan(value := float(found[3])):
            yield found[1] + other_labels(LABEL.findall(found[2] or "")), value


def is_kept(name: str) -> bool:
    """Tell whether a sample is kept, by its name or the line that begins with it."""
    return name.startswith(_KEPT) and not name.startswith(_LABELS_ONLY)


def other_labels(labels: Iterable[tuple[str, str]]) -> str:
    """Return the part of a series' name that its labels are."""
    others = [f'{name}="{value}"' for name, value in labels if name != "cluster"]
    return "{" + ",".join(others) + "}" if others else ""


class KernelBooks:
    """What the kernel knows of one process of this machine. Units: bytes, seconds, counts.

    Args:
        process: What it is called in messages, ``broker`` or ``proxy``.
        pid: Its process id.
    """

    def __init__(self, process: str, pid: int, proc: Path = Path("/proc")) -> None:
        self._process = process
        self._pid = pid
        self._directory = proc / str(pid)

    def reset_high_water_mark(self) -> None:
        """Begin a new peak.

        Raises:
            UsageError: There is no such process here, or it belongs to somebody else.
        """
        try:
            (self._directory / "clear_refs").write_text(_RESET_HIGH_WATER_MARK)
        except OSError as error:
            raise self._unreadable(error) from None

    def samples(self) -> dict[str, float]:
        """Return what the process would tell of itself, by Prometheus' names, and its peak.

        Raises:
            UsageError: The process has ended.
        """
        try:
            status = (self._directory / "status").read_text()
            times = (self._directory / "stat").read_text().rpartition(")")[2].split()
            limit = _OPEN_FILES.search((self._directory / "limits").read_text())
            descriptors = len(os.listdir(self._directory / "fd"))
        except OSError as error:
            raise self._unreadable(error) from None
        memory = {name: int(kilobytes) * 1024 for name, kilobytes in _MEMORY.findall(status)}
        if len(memory) < 2:
            raise UsageError(f"process {self._pid} ({self._process}) has ended")
        ticks = int(times[_USER_TIME]) + int(times[_SYSTEM_TIME])
        return {
            "process_resident_memory_bytes": memory["VmRSS"],
            "process_resident_memory_high_water_bytes": memory["VmHWM"],
            "process_cpu_seconds_total": ticks / _TICKS_PER_SECOND,
            "process_open_fds": descriptors,
            **({"process_max_fds": float(limit[1])} if limit else {}),
        }

    def _unreadable(self, error: OSError) -> UsageError:
        return UsageError(
            f"the memory of process {self._pid}, the {self._process}, cannot be read: "
            f"{error.strerror}; name a process of yours on this machine, or leave it out"
        )
