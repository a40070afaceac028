"""What is known of a finished run, as values: its figures, its requests, its servers over time.

Reports, tables and the demo's checks work on these values alone. Nothing here knows how a run is
driven or where its files are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PROCESSES = ("broker", "proxy")


@dataclass(frozen=True)
class AccountedMemory:
    """What one limiter saw of one kind of memory. Units: bytes."""

    limit_bytes: int
    high_water_bytes: int
    final_bytes: int


@dataclass(frozen=True)
class ProcessMemory:
    """What one server process needed during a run. Units: bytes, counts of requests.

    ``heap`` and ``direct`` are None when the limit is 0, because Pulsar then accounts for nothing.
    """

    heap: AccountedMemory | None
    direct: AccountedMemory | None
    outbound_pending_peak_bytes: int
    resident_idle_bytes: int
    resident_peak_bytes: int
    resident_over_idle_bytes: int
    heap_timeouts: int
    direct_timeouts: int


@dataclass(frozen=True)
class Latency:
    """Answered requests only, from the intended start to the last byte. Units: seconds."""

    p50: float
    p99: float
    max: float


@dataclass(frozen=True)
class RunSummary:
    """The figures of one run: what each client got, how long it took, what the servers needed."""

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
    generator_limited: bool
    processes: Mapping[str, ProcessMemory]

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
        """What was counted, in words: ``1,000 clients``, or requests where a client asks often."""
        if self.requests == self.clients:
            return plural(self.clients, "client")
        return plural(self.requests, "request")

    @property
    def resident_over_idle_bytes(self) -> int | None:
        """Memory over idle of all watched processes together; None when none was watched."""
        if not self.processes:
            return None
        return sum(process.resident_over_idle_bytes for process in self.processes.values())

    @property
    def outbound_pending_peak_bytes(self) -> int | None:
        """The larger of the processes' peaks; None when no process was watched."""
        return max(
            (process.outbound_pending_peak_bytes for process in self.processes.values()),
            default=None,
        )


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
        """When the requests of one outcome ended, sorted."""
        rows = zip(self.finished_seconds, self.outcomes, strict=True)
        return sorted(finished for finished, kind in rows if kind == outcome)


@dataclass(frozen=True)
class Series:
    """One metric of one process over time. Units: seconds since the agreed start; the metric's."""

    at_seconds: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Run:
    """One run directory: what was run, what came out, and both over time."""

    directory: Path
    description: Mapping[str, Any]
    summary: RunSummary
    requests: Requests
    metrics: Mapping[tuple[str, str], Series]

    def series(self, process: str, metric: str) -> Series | None:
        """One metric of one process, by its name without prefix; None when nobody scraped it."""
        return self.metrics.get((process, metric))


def parse_summary(document: Mapping[str, Any]) -> RunSummary:
    """Turn the JSON of a summary into figures.

    Raises:
        KeyError: A field is missing.
        TypeError: A field has the wrong type.
    """
    return RunSummary(
        name=str(document["name"]),
        label=str(document["label"]),
        clients=int(document["clients"]),
        answered=int(document["answered"]),
        refused={str(reason): int(count) for reason, count in document["refused"].items()},
        wrong=int(document["wrong"]),
        timeout=int(document["timeout"]),
        disconnected=int(document["disconnected"]),
        unreachable=int(document["unreachable"]),
        latency_seconds=_parse_latency(document["latency_seconds"]),
        received_bytes=int(document["bytes"]),
        generator_limited=bool(document["generator_limited"]),
        processes={
            name: _parse_process(document["processes"][name])
            for name in PROCESSES
            if document["processes"].get(name) is not None
        },
    )


def _parse_latency(document: Mapping[str, Any] | None) -> Latency | None:
    if not document or document.get("p50") is None:
        return None
    return Latency(
        p50=float(document["p50"]), p99=float(document["p99"]), max=float(document["max"])
    )


def _parse_process(document: Mapping[str, Any]) -> ProcessMemory:
    return ProcessMemory(
        heap=_parse_accounted(document["heap"]),
        direct=_parse_accounted(document["direct"]),
        outbound_pending_peak_bytes=int(document["outbound_pending_peak_bytes"]),
        resident_idle_bytes=int(document["resident_idle_bytes"]),
        resident_peak_bytes=int(document["resident_peak_bytes"]),
        resident_over_idle_bytes=int(document["resident_over_idle_bytes"]),
        heap_timeouts=int(document["heap_timeouts"]),
        direct_timeouts=int(document["direct_timeouts"]),
    )


def _parse_accounted(document: Mapping[str, Any] | None) -> AccountedMemory | None:
    if document is None:
        return None
    return AccountedMemory(
        limit_bytes=int(document["limit_bytes"]),
        high_water_bytes=int(document["high_water_bytes"]),
        final_bytes=int(document["final_bytes"]),
    )
