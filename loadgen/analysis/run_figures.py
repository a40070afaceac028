"""The figures of a run that are compared with those of others, from its summary alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.analysis.measures import Unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FAILURES = ("wrong", "timeout", "disconnected", "unreachable")
# Of fewer requests than these a percentile is the slowest, which has a row of its own.
_PERCENTILES = {"p50": 1, "p90": 10, "p99": 100, "p999": 1000, "p9999": 10_000, "max": 1}
_OF_A_PROCESS = {
    "heap_timeouts": ("waited for heap in vain", Unit.COUNT),
    "direct_timeouts": ("waited for direct in vain", Unit.COUNT),
    "outbound_pending_peak_bytes": ("unread at most", Unit.BYTES),
    "resident_over_idle_bytes": ("memory over idle", Unit.BYTES),
    "resident_highest_scrape_bytes": ("memory, highest scrape", Unit.BYTES),
    "cpu_seconds": ("processor time", Unit.SECONDS),
}


@dataclass(frozen=True)
class Figure:
    """A figure's name, its unit and its value in one run."""

    name: str
    unit: Unit
    value: float


def figures_of(summary: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield the figures of a summary; what nobody measured is left out."""
    yield Figure("answered", Unit.COUNT, summary["answered"])
    refused = summary["refused"]
    yield Figure("refused", Unit.COUNT, sum(refused.values()))
    for reason in sorted(refused):
        yield Figure(f"refused: {reason}", Unit.COUNT, refused[reason])
    yield Figure("failed", Unit.COUNT, sum(summary[each] for each in _FAILURES))
    for kind, title in (("latency_seconds", "response"), ("service_latency_seconds", "service")):
        yield from _percentiles(title, summary.get(kind), summary["answered"])
    for name, group in sorted((summary.get("groups") or {}).items()):
        yield Figure(f"{name}: back", Unit.COUNT, group["back"])
        yield from _percentiles(f"{name}: back", group.get("back_seconds"), group["back"])
    for name, process in sorted(summary["processes"].items()):
        yield from _process(name, process)


def _percentiles(title: str, found: Mapping[str, Any] | None, count: int) -> Iterator[Figure]:
    for name, fewest in _PERCENTILES.items():
        value = (found or {}).get(name)
        if value is not None and count >= fewest:
            yield Figure(f"{title} {name}", Unit.SECONDS, value)


def _process(name: str, process: Mapping[str, Any]) -> Iterator[Figure]:
    for kind in ("heap", "direct"):
        accounted = process.get(kind) or {}
        marks = (accounted.get("high_water_bytes"), accounted.get("highest_scrape_bytes"))
        most = next((each for each in marks if each is not None), None)
        if most is not None:
            yield Figure(f"{name}: {kind} held at most", Unit.BYTES, most)
    for field, (words, unit) in _OF_A_PROCESS.items():
        value = process.get(field)
        if value is not None:
            yield Figure(f"{name}: {words}", unit, value)
