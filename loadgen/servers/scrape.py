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
from contextlib import ExitStack, suppress
from http.client import HTTPException
from typing import TYPE_CHECKING

from loadgen.access import WebPages
from loadgen.errors import UsageError
from loadgen.servers.kernel_books import KernelBooks
from loadgen.servers.series import ProcessSeries, ScrapeTarget, WatchedServers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


SCRAPE_SECONDS = 0.25
MEMORY_KINDS = ("heap", "direct")
_REQUEST_TIMEOUT_SECONDS = 2.0
_LARGEST_PAGE_BYTES = 16 * 1024 * 1024
# How many scrapes memory may take to come back after the last client has gone.
_SETTLE_SCRAPES = 24

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


class ProcessWatch(ProcessSeries):
    """The figures seen of one server. Its threads alone write, until they have ended."""

    def __init__(self, target: ScrapeTarget) -> None:
        super().__init__(target)
        self._books = None if target.pid is None else KernelBooks(target.process, target.pid)
        self._books_open = self._books is not None
        self._pages = WebPages()
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
            self.add(time.perf_counter(), self._books.samples())
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

    def _read_books(self) -> None:
        assert self._books is not None
        while not self._storm_over.wait(SCRAPE_SECONDS):
            try:
                self.add(time.perf_counter(), self._books.samples())
            except UsageError:
                # It has ended. Another may answer at its address by now, and tells of itself.
                self._books_open = False

    def _watch(self) -> None:
        while not self._storm_over.wait(SCRAPE_SECONDS):
            self._try_scrape()
        for _ in range(_SETTLE_SCRAPES):
            self.seen_at_the_end = self._try_scrape() or self.seen_at_the_end
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
        page = self._pages.read(url, _REQUEST_TIMEOUT_SECONDS, _LARGEST_PAGE_BYTES)
        samples = dict(kept_samples(page))
        if self._books_open:
            for metric in _OF_THE_PROCESS:
                samples.pop(metric, None)
        self.add(time.perf_counter(), samples)

    def _holds_memory(self) -> bool:
        return any(self.last(self.used_metric(kind)) for kind in MEMORY_KINDS)


class ServerWatch(WatchedServers):
    """Watches every target for the time of a block."""

    processes: Mapping[str, ProcessWatch]

    def __init__(self, targets: list[ScrapeTarget]) -> None:
        super().__init__({target.process: ProcessWatch(target) for target in targets})
        self._stack = ExitStack()

    def __enter__(self) -> ServerWatch:
        with ExitStack() as stack:
            for process in self.processes.values():
                stack.enter_context(process)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()


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
