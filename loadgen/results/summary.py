"""A finished run as values: its figures, its requests, its servers over time.

Reports, tables and the demo's checks work on these values alone. Nothing here knows how a run is
driven or where its files are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadgen.results.checks import CheckResult
from loadgen.results.client_memory import ClientMemoryFigures, parse_client_memory
from loadgen.results.generator import (
    CLIENT_START_ERROR_LIMIT_SECONDS,
    START_ERROR_LIMIT_SECONDS,
)
from loadgen.results.latency import Latency, parse_latency, read_figures
from loadgen.results.restarts import ServerRestart, parse_restarts
from loadgen.results.silent import SilentFigures, parse_silent
from loadgen.results.stuck import StuckFigures, parse_stuck
from loadgen.places.server_facts import ServerFacts, parse_server_facts
from loadgen.units import plural
from server.configuration.flow import HIGH_WATER_MARK_KEY, PAUSE_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa


PROCESSES = ("broker", "proxy")


@dataclass(frozen=True)
class AccountedMemory:
    """One limiter's figures of one kind of memory. Units: bytes; None is unknown.

    Attributes:
        limit_bytes: What may be held at once.
        high_water_bytes: The most that was held, as the server itself kept it: None of a server
            that does not, such as Pulsar.
        highest_scrape_bytes: The most that a scrape met; what lies between two scrapes is missed.
        final_bytes: What was still held at the end.
    """

    limit_bytes: int
    high_water_bytes: int | None
    highest_scrape_bytes: int | None
    final_bytes: int | None

    @property
    def peak_bytes(self) -> int | None:
        """The server's own mark where it keeps one, else the highest scrape."""
        return self.highest_scrape_bytes if self.high_water_bytes is None else self.high_water_bytes

    @property
    def peak_is_scraped(self) -> bool:
        """True if the peak is only the highest scrape."""
        return self.high_water_bytes is None and self.highest_scrape_bytes is not None


@dataclass(frozen=True)
class ProcessMemory:
    """The memory of one server process during a run. Units: bytes, counts; None is unknown.

    ``heap`` and ``direct`` are None when the limit is 0, because Pulsar then accounts for nothing,
    and when the server has no such limiter: the count of its timeouts is None as well then.
    """

    heap: AccountedMemory | None
    direct: AccountedMemory | None
    outbound_pending_peak_bytes: int | None
    resident_idle_bytes: int | None
    resident_peak_bytes: int | None
    resident_over_idle_bytes: int | None
    resident_over_first_scrape_bytes: int | None
    heap_timeouts: int | None
    direct_timeouts: int | None
    cpu_seconds: float | None = None
    descriptors_peak: int | None = None
    descriptors_limit: int | None = None

    @property
    def tells_accounting(self) -> bool:
        """True if the server has the topic-list limiter's figures, whatever they are."""
        return self.heap_timeouts is not None or self.direct_timeouts is not None


@dataclass(frozen=True)
class RunSummary:
    """The figures of one run: what each client got, how long it took, what the servers needed.

    ``scenario`` is a name of the registry. ``server_version`` is what CONNECTED said at the address
    that clients ask; ``servers`` is what each watched server says of itself. Topics and bytes of an
    answer are the least and the most.
    """

    name: str
    label: str
    clients: int
    answered: int
    refused: Mapping[str, int]
    wrong: int
    timeout: int
    disconnected: int
    unreachable: int
    latency_seconds: Latency | None
    received_bytes: int
    start_error_seconds: float
    client_start_error_seconds: float
    generator_limited: bool
    processes: Mapping[str, ProcessMemory]
    interrupted: bool = False
    scenario: str = "storm"
    stuck: StuckFigures | None = None
    silent: SilentFigures | None = None
    client_memory: ClientMemoryFigures | None = None
    server_version: str | None = None
    servers: Mapping[str, ServerFacts] = field(default_factory=dict)
    thresholds: Sequence[CheckResult] = ()
    generator_limits: Sequence[str] = ()
    topics_per_answer: tuple[int, int] | None = None
    bytes_per_answer: tuple[int, int] | None = None
    restarts: Sequence[ServerRestart] = ()

    @property
    def sent_late(self) -> bool:
        """True if the generator began, or asked, too late; it may have had other limits."""
        return (
            self.start_error_seconds > START_ERROR_LIMIT_SECONDS
            or self.client_start_error_seconds > CLIENT_START_ERROR_LIMIT_SECONDS
        )

    @property
    def refused_total(self) -> int:
        """All refusals, whatever their reason."""
        return sum(self.refused.values())

    @property
    def failed(self) -> int:
        """Clients that got neither an answer nor a refusal, or a wrong answer."""
        return self.wrong + self.timeout + self.disconnected + self.unreachable

    @property
    def requests(self) -> int:
        """Requests in all; more than clients where each asks several times."""
        return self.answered + self.refused_total + self.failed

    @property
    def asked(self) -> str:
        """The count in words: ``1,000 clients``, or requests where a client asks often."""
        if self.requests == self.clients:
            return plural(self.clients, "client")
        return plural(self.requests, "request")

    @property
    def resident_over_idle_bytes(self) -> int | None:
        """Memory over idle of all watched processes together; None when not all was measured."""
        return _sum_of_all(each.resident_over_idle_bytes for each in self.processes.values())

    @property
    def resident_scraped_bytes(self) -> int | None:
        """The same without process ids: what scrapes saw over the first; None when not all did."""
        return _sum_of_all(
            each.resident_over_first_scrape_bytes
            if each.resident_over_idle_bytes is None
            else each.resident_over_idle_bytes
            for each in self.processes.values()
        )

    @property
    def outbound_pending_peak_bytes(self) -> int | None:
        """The larger of the processes' peaks; None when none was measured."""
        peaks = [process.outbound_pending_peak_bytes for process in self.processes.values()]
        return max((peak for peak in peaks if peak is not None), default=None)

    def paused_at_bytes(self, process: str) -> int | None:
        """Bytes that silent clients may leave unread in a process with pauses at its high mark.

        None where there are none, or the process does not pause, or does not say.
        """
        told = self.servers.get(process)
        if self.silent is None or told is None or told.settings.get(PAUSE_KEY) != "true":
            return None
        mark = told.settings.get(HIGH_WATER_MARK_KEY, "")
        clients = self.silent.producers + self.silent.consumers
        return clients * int(mark) if mark.isdigit() else None


@dataclass(frozen=True)
class Requests:
    """The requests that ended, as columns of one length. Units: seconds since the agreed start."""

    intended_start_seconds: Sequence[float]
    finished_seconds: Sequence[float]
    outcomes: Sequence[str]

    def latencies(self, outcome: str) -> list[float]:
        """Response latencies of one outcome, sorted."""
        rows = zip(self.intended_start_seconds, self.finished_seconds, self.outcomes, strict=True)
        return sorted(finished - start for start, finished, kind in rows if kind == outcome)

    def finish_times(self, outcome: str) -> list[float]:
        """Return when the requests of one outcome ended, sorted."""
        rows = zip(self.finished_seconds, self.outcomes, strict=True)
        return sorted(finished for finished, kind in rows if kind == outcome)


@dataclass(frozen=True)
class Series:
    """One metric of one process over time. Units: seconds since the agreed start; the metric's."""

    at_seconds: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Run:
    """One run directory: what was run, what came out, and both over time.

    ``rows`` are its requests with all their columns, ``clients`` its clients, where they have
    families; ``document`` is the summary as it is written.
    """

    directory: Path
    description: Mapping[str, Any]
    summary: RunSummary
    requests: Requests
    metrics: Mapping[tuple[str, str], Series]
    rows: pa.Table
    clients: pa.Table
    document: Mapping[str, Any]

    def series(self, process: str, metric: str) -> Series | None:
        """Return a figure of a process, by its name of the vocabulary; None if nobody told it."""
        return self.metrics.get((process, metric))


def _sum_of_all(figures: Iterable[int | None]) -> int | None:
    found = list(figures)
    known = [figure for figure in found if figure is not None]
    return sum(known) if found and len(known) == len(found) else None


def parse_summary(document: Mapping[str, Any]) -> RunSummary:
    """Turn the JSON of a summary into figures.

    Raises:
        KeyError: A field is missing.
        TypeError: A field has the wrong type.
    """
    processes = document["processes"]
    return read_figures(
        RunSummary,
        document,
        name=str(document["name"]),
        label=str(document["label"]),
        refused={str(reason): int(count) for reason, count in document["refused"].items()},
        latency_seconds=parse_latency(document["latency_seconds"]),
        received_bytes=int(document["bytes"]),
        start_error_seconds=float(document["start_error_seconds_max"]),
        client_start_error_seconds=float(document.get("client_start_error_seconds_max", 0.0)),
        processes={
            name: _parse_process(processes[name]) for name in PROCESSES if processes.get(name)
        },
        # Older runs do not say what they were.
        scenario=str(document.get("scenario") or ("stuck" if document.get("stuck") else "storm")),
        stuck=parse_stuck(document.get("stuck")),
        silent=parse_silent(document.get("silent")),
        client_memory=parse_client_memory(document.get("client_memory")),
        server_version=document.get("server_version"),
        servers={
            name: parse_server_facts(facts) for name, facts in document.get("servers", {}).items()
        },
        generator_limits=tuple(document.get("generator_limits", ())),
        thresholds=[
            CheckResult(each["threshold"], each["passed"], f"{each['threshold']}: {each['found']}")
            for each in document.get("thresholds", ())
        ],
        topics_per_answer=_extremes(document.get("topics_per_answer")),
        bytes_per_answer=_extremes(document.get("bytes_per_answer")),
        restarts=parse_restarts(document.get("restarts", ())),
    )


def _extremes(document: Mapping[str, Any] | None) -> tuple[int, int] | None:
    return None if document is None else (int(document["min"]), int(document["max"]))


def _parse_process(document: Mapping[str, Any]) -> ProcessMemory:
    old = dict.fromkeys(("highest_scrape_bytes", "resident_over_first_scrape_bytes"))
    accounted = {
        kind: document[kind] and read_figures(AccountedMemory, {**old, **document[kind]})
        for kind in ("heap", "direct")
    }
    return read_figures(ProcessMemory, {**old, **document}, **accounted)
