"""The figures of the demo's runs, side by side: what clients got, and what servers held."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from loadgen.results.summary import Split, summary_of
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.results.results import Results
    from loadgen.results.summary import Percentiles, ServerFigure
    from loadgen.results.verdict import Verdict

_LIMITERS = ("heap", "direct")
OVER_IDLE, UNREAD, _CPU = "resident over idle", "answers not yet read", "CPU"
_MEASURES: dict[str, tuple[str, Callable[[ServerFigure], float]]] = {
    **{kind: (f"{kind}.used", lambda seen: seen.max or 0.0) for kind in _LIMITERS},
    UNREAD: ("unread", lambda seen: seen.max or 0.0),
    OVER_IDLE: ("resident", lambda seen: (seen.max or 0.0) - (seen.first or 0.0)),
    _CPU: ("cpu.seconds", lambda seen: seen.rise or 0.0),
}
"""Rows of the table by their words: the servers' figure, and what of it."""
# Of healthy clients beside the one that reads nothing, from its first list until it leaves.
_PHASE = """SELECT count(*) FILTER (there) AS due,
  count(*) FILTER (there AND got AND done < :until) AS answered,
  count(*) FILTER (there AND outcome = 'refused') AS refused,
  count(DISTINCT client) FILTER (there AND outcome = 'refused') AS refused_clients,
  count(*) FILTER (there AND outcome NOT IN ('answered', 'refused')) AS failed,
  min(done) FILTER (got AND done >= :since AND due >= :since) - min(due) FILTER (there) AS silence,
  count(*) FILTER (due >= :until) AS due_after,
  count(*) FILTER (due >= :until AND got) AS answered_after,
  count(DISTINCT client) AS clients, max(response_seconds) FILTER (got) AS slowest,
  (SELECT count(*) FROM events WHERE what = 'connection-lost' AND "group" <> :peer) AS lost
FROM (SELECT *, outcome = 'answered' AS got, due >= :since AND due < :until AS there
  FROM requests WHERE "group" <> :peer AND operation = 'list')"""


class Held(NamedTuple):
    """What a limiter accounted for at most and at the end, and its limit. Units: bytes."""

    most: float
    final: float
    limit: float


@dataclass(frozen=True)
class Figures:
    """The figures of one run.

    Attributes:
        total: Counts and percentiles of those who read what they ask for; the others get nothing.
        reasons: Texts of refusals, and how many had each.
        memory: By the rows of the table; what nobody measured is not there.
        limited: What limiters held, by the rows of the table; those that are off are not there.
        phase: Of a run beside a client that reads nothing.
    """

    label: str
    directory: Path
    verdict: Verdict
    total: Split
    reasons: Mapping[str, int]
    memory: Mapping[str, float]
    limited: Mapping[str, Held]
    phase: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """Requests that got neither an answer nor a refusal."""
        return self.total.requests - self.total.answered - self.total.refused

    @property
    def unread(self) -> float:
        """The most of answers that waited in one server."""
        return max(self._of(UNREAD), default=0.0)

    @property
    def over_idle(self) -> float | None:
        """How much broker and proxy grew together; None if nobody measured it."""
        found = self._of(OVER_IDLE)
        return sum(found) if found else None

    def _of(self, words: str) -> list[float]:
        return [value for name, value in self.memory.items() if name.startswith(words)]

    def told(self) -> dict[str, Any]:
        """Return them as JSON has them."""
        return {
            "label": self.label,
            "verdict": self.verdict.word,
            **self.total.model_dump(exclude={"part"}),
            "reasons": dict(self.reasons),
            "memory": dict(self.memory),
            "beside": dict(self.phase),
        }


def figures_of(label: str, results: Results, verdict: Verdict) -> Figures:
    """Return the figures of a run."""
    summary, phase = summary_of(results, verdict), {}
    total, servers = summary.total, sorted(summary.servers.items())
    for peer in (each for each in results.document["clients"] if each["read"]["never"]):
        others = [each for each in summary.splits["by-group"] if each.part != peer["name"]]
        total = others[0] if others else Split(part="all", response_seconds=None)
        until = (peer.get("drop") or {}).get("at", math.inf)
        (phase,) = results.sql(_PHASE, peer=peer["name"], since=peer["after"], until=until)
    return Figures(
        label,
        results.directory,
        verdict,
        total,
        {each.reason: each.requests for each in summary.reasons if each.outcome == "refused"},
        {
            f"{words}, {server}": value_of(told.figures[name])
            for words, (name, value_of) in _MEASURES.items()
            for server, told in servers
            if name in told.figures
        },
        {
            f"{kind}, {server}": held
            for kind in _LIMITERS
            for server, told in servers
            if (held := _held(kind, told.figures)).limit > 0
        },
        phase,
    )


def _held(kind: str, figures: Mapping[str, ServerFigure]) -> Held:
    """Return what a limiter held: what it does not tell is too much; a limit of 0 is off."""
    used, limit = figures.get(f"{kind}.used"), figures.get(f"{kind}.limit")
    most, final = (used.max or 0.0, used.last or 0.0) if used else (math.inf, math.inf)
    return Held(most, final, limit.last or 0.0 if limit else 0.0)


def table_of(runs: Sequence[Figures]) -> tuple[list[str], list[list[str]]]:
    """Return the heads of a table, and its rows: a measure each, a cell for each run."""
    reasons = sorted({reason for run in runs for reason in run.reasons})
    columns = [dict(_cells(run, reasons)) for run in runs]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[name, *(column.get(name, "-") for column in columns)] for name in names]
    return ["", *(run.label for run in runs)], rows


def _cells(run: Figures, reasons: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield "in all", format_count(run.total.requests)
    yield "answered", format_count(run.total.answered)
    yield "refused", format_count(run.total.refused)
    for reason in reasons:
        yield f"  {reason}", format_count(run.reasons.get(reason, 0))
    yield "neither", format_count(run.failed)
    if run.phase:
        yield "due while it reads nothing", format_count(run.phase["due"])
        yield "  answered in that time", format_count(run.phase["answered"])
        yield "  refused", format_count(run.phase["refused"])
        yield "  time without any answer", silence(run)
    for words, name in (("median (p50)", "p50"), ("p99", "p99"), ("slowest", "max")):
        yield f"latency, {words}", _latency(run.total.response_seconds, name, run.total.answered)
    for name, value in run.memory.items():
        text = (format_seconds if name.startswith(_CPU) else format_bytes)(value)
        held = run.limited.get(name)
        yield name, f"{text} of {format_bytes(held.limit)}" if held else text


def _latency(found: Percentiles | None, name: str, answered: int) -> str:
    value = getattr(found, name, None)
    if not answered:
        return "no answers"
    return "never" if value is None else format_seconds(value)


def silence(run: Figures) -> str:
    """Return for how long nobody got an answer beside a client that reads nothing."""
    seconds = run.phase["silence"]
    return "without end" if seconds is None else format_seconds(seconds)
