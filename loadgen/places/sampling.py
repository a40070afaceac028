"""Sampling of the servers' metrics and memory during a run, four times a second.

Each server is sampled in a thread of its own, so that a slow server does not delay the samples of
another one, nor the event loop that times clients. Kept samples: the topic-list limiter's,
connections, pending outbound bytes, memory, CPU and descriptors. For processes with known ids a
further thread reads the last three from the kernel, because ``/proc`` answers immediately and a
busy server only after a delay. The label ``cluster`` is dropped, other labels stay in the name.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from array import array
from collections import defaultdict
from contextlib import suppress
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
MOST_SHARE = 0.05
"""Largest share of a server's time for its metrics page, which may take a tenth of a second."""
REQUEST_TIMEOUT_SECONDS, FIRST_PATIENCE_SECONDS = 2.0, 20.0
LARGEST_PAGE_BYTES = 16 * 1024 * 1024
_SETTLE_SAMPLES = 24
"""Most samples from the last client's end until the release of memory."""
_MOST_POINTS = 200_000
"""Maximum number of samples, 14 hours; beyond, every other point of a series is dropped."""
_OF_THE_PROCESS = (
    "process_resident_memory_bytes",
    "process_resident_memory_high_water_bytes",
    "process_cpu_seconds_total",
    "process_open_fds",
)
"""Metrics read from /proc instead of the server's own page."""
_KEPT = (
    "pulsar_broker_topic_list_",
    "pulsar_proxy_topic_list_",
    "pulsar_active_connections",
    "pulsar_proxy_active_connections",
    "pulsar_broker_lookup_pending_requests",
    "floodgate_",
    "jvm_memory_bytes_used",
    "jvm_memory_bytes_max",
    "jvm_memory_direct_bytes_",
    "process_max_fds",
    *_OF_THE_PROCESS,
)
# Always 1; the labels are in run.json.
_LABELS_ONLY = "floodgate_server_info"
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? +(\S+)(?: +-?\d+)?$")
LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
UNREADABLE = (OSError, ValueError, HTTPException)
_RESET_HIGH_WATER_MARK = "5"
_MEMORY = re.compile(r"^(VmRSS|VmHWM):\s+(\d+) kB$", re.MULTILINE)
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the name, which may have any characters: user and system time.
_USER_TIME, _SYSTEM_TIME = 11, 12


class Samples:
    """The metrics of several servers, each sampled over time.

    Mutable state: the points of each metric, by server process.

    Attributes:
        seen_at_the_end: Names of servers that were last sampled after all clients had left.
    """

    def __init__(self, processes: Iterable[str]) -> None:
        self._series: dict[str, dict[str, tuple[array[float], array[float]]]] = {
            process: {} for process in processes
        }
        self.seen_at_the_end: set[str] = set()

    @property
    def processes(self) -> tuple[str, ...]:
        """The names of the sampled servers, such as ``broker``."""
        return tuple(self._series)

    def add(self, process: str, at: float, samples: Mapping[str, float]) -> None:
        """Add a server's metrics, sampled at the moment ``at`` in seconds of the samples' clock."""
        series = self._series[process]
        for metric, value in samples.items():
            moments, values = series.setdefault(metric, (array("d"), array("d")))
            if len(moments) >= _MOST_POINTS:
                del moments[1::2], values[1::2]
            moments.append(at)
            values.append(value)

    def series(self, process: str, metric: str) -> tuple[list[float], list[float]]:
        """Return the times and values of a server's metric; empty if it was never sampled."""
        moments, values = self._series[process].get(metric, ((), ()))
        return list(moments), list(values)

    def figures(self, process: str) -> dict[str, float]:
        """Return the latest values of a server's metrics, by their common names.

        Such a name is ``heap.used``; metrics without a common name are left out.
        """
        series = [*self._series[process].items()]
        latest = {figure_of(metric): values[-1] for metric, (_, values) in series}
        return {figure: value for figure, value in latest.items() if figure is not None}

    def holds_memory(self, process: str) -> bool:
        """Return True if a server's limiters currently account for the memory of a topic list."""
        figures = self.figures(process)
        return any(figures.get(f"{kind}.used") for kind in ("heap", "direct"))

    def write(self, directory: str, run: str, t0: float, t0_epoch_seconds: float) -> None:
        """Write all samples to the table ``samples`` of a run directory.

        Args:
            directory: The run directory.
            run: The run's name.
            t0: The agreed start on the samples' clock.
            t0_epoch_seconds: The agreed start on the wall clock.
        """
        columns: defaultdict[str, list[object]] = defaultdict(list)
        for process, series in self._series.items():
            for metric, (moments, values) in series.items():
                seconds = [moment - t0 for moment in moments]
                columns["run"] += [run] * len(seconds)
                columns["process"] += [process] * len(seconds)
                columns["at"] += [round((t0_epoch_seconds + each) * 1e6) for each in seconds]
                columns["seconds"] += seconds
                columns["metric"] += [metric] * len(seconds)
                columns["figure"] += [figure_of(metric)] * len(seconds)
                columns["value"] += values
        write_table(directory, "samples", 0, columns)


class ServerWatch(Samples):
    """Samples servers during a ``with`` block; times are those of ``time.perf_counter``.

    Mutable state: the kernel's figures of each process with a known id, until the process ends.

    Args:
        admin_urls: The servers' web ports, by process (``broker`` or ``proxy``).
        pids: Ids of server processes on this machine, whose memory is read from the kernel.
    """

    def __init__(self, admin_urls: Mapping[str, str], pids: Mapping[str, int]) -> None:
        super().__init__(admin_urls)
        self._admin_urls = admin_urls
        self._books = {
            process: KernelBooks(process, pids[process])
            for process in admin_urls
            if process in pids
        }
        self._numbered = tuple(self._books)
        self._pages = WebPages()
        self._pauses: dict[str, float] = {}
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch, args=(each,), name="sample", daemon=True)
            for each in admin_urls
        ]
        self._threads.append(threading.Thread(target=self._read_books, name="books", daemon=True))

    def __enter__(self) -> ServerWatch:
        """Sample each server once, so that a wrong address is detected; then sample in threads.

        Raises:
            UsageError: A page, or a process's memory, cannot be read.
        """
        for process, url in self._admin_urls.items():
            try:
                # The server may still be busy with topics, or with an earlier storm.
                took = min(self._scrape(process, FIRST_PATIENCE_SECONDS) for _ in range(2))
            except UNREADABLE as error:
                reason = str(getattr(getattr(error, "reason", None), "strerror", None) or error)
                raise UsageError(
                    f"{url}/metrics/ cannot be read ({reason}): check --admin-url {process}=..."
                ) from None
            self._pauses[process] = max(SAMPLE_SECONDS, took / MOST_SHARE)
        for process, books in self._books.items():
            books.reset_high_water_mark()
            self.add(process, time.perf_counter(), books.samples())
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def restarted(self, process: str, pid: int) -> None:
        """Read a server's memory from the new process that replaced the old one."""
        if process in self._numbered:
            self._books[process] = KernelBooks(process, pid)

    def _read_books(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            for process, books in [*self._books.items()]:
                try:
                    self.add(process, time.perf_counter(), books.samples())
                except UsageError:
                    # The process has ended. Another may answer at the address by now.
                    if self._books[process] is books:
                        del self._books[process]

    def _watch(self, process: str) -> None:
        while not self._over.wait(self._pauses[process]):
            # A missing page shows as a gap in the curve.
            with suppress(*UNREADABLE):
                self._scrape(process)
        for _ in range(_SETTLE_SAMPLES):
            with suppress(*UNREADABLE):
                self._scrape(process)
                self.seen_at_the_end.add(process)
            if not self.holds_memory(process):
                return
            time.sleep(SAMPLE_SECONDS)

    def _scrape(self, process: str, patience: float = REQUEST_TIMEOUT_SECONDS) -> float:
        """Sample a server's metrics page; return the number of seconds until it was read."""
        begun = time.perf_counter()
        url = f"{self._admin_urls[process].rstrip('/')}/metrics/"
        page = self._pages.read(url, patience, LARGEST_PAGE_BYTES)
        # Figures from the kernel's books take precedence over the page.
        told = _OF_THE_PROCESS if process in self._books else ()
        kept = {metric: value for metric, value in kept_samples(page) if metric not in told}
        ended = time.perf_counter()
        self.add(process, ended, kept)
        return ended - begun


def kept_samples(page: str) -> Iterator[tuple[str, float]]:
    """Yield the name and value of each sample in a Prometheus page that a run is to keep.

    Samples with the value NaN are skipped.
    """
    for line in page.splitlines():
        found = _SAMPLE.match(line) if is_kept(line) else None
        if found is not None and not math.isnan(value := float(found[3])):
            yield found[1] + other_labels(LABEL.findall(found[2] or "")), value


def is_kept(name: str) -> bool:
    """Return True if a run keeps a metric, given its name or its line in a Prometheus page."""
    return name.startswith(_KEPT) and not name.startswith(_LABELS_ONLY)


def other_labels(labels: Iterable[tuple[str, str]]) -> str:
    """Return the labels of a series except ``cluster``, in Prometheus notation."""
    others = [f'{name}="{value}"' for name, value in labels if name != "cluster"]
    return "{" + ",".join(others) + "}" if others else ""


class KernelBooks:
    """The kernel's figures of a local process: memory, processor time and open files.

    Args:
        process: Name of the server in messages, ``broker`` or ``proxy``.
        pid: The process id.
    """

    def __init__(self, process: str, pid: int, proc: Path = Path("/proc")) -> None:
        self._process = process
        self._pid = pid
        self._directory = proc / str(pid)

    def reset_high_water_mark(self) -> None:
        """Make the kernel record the process's peak memory from now on, forgetting earlier peaks.

        Raises:
            UsageError: The process does not exist, or belongs to another user.
        """
        try:
            (self._directory / "clear_refs").write_text(_RESET_HIGH_WATER_MARK)
        except OSError as error:
            raise self._unreadable(error) from None

    def samples(self) -> dict[str, float]:
        """Return the process's memory, its peak, processor time and open files.

        The keys are the names of Prometheus's standard process metrics.

        Raises:
            UsageError: The process has ended, or cannot be read.
        """
        try:
            status = (self._directory / "status").read_text()
            times = (self._directory / "stat").read_text().rpartition(")")[2].split()
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
        }

    def _unreadable(self, error: OSError) -> UsageError:
        return UsageError(
            f"the memory of process {self._pid}, the {self._process}, cannot be read: "
            f"{error.strerror}; name a process of yours on this machine, or leave it out"
        )
