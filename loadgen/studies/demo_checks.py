"""Checks of the demo's runs: of each run alone, and of runs compared with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from loadgen.report.run_charts import QUESTIONS
from loadgen.results.files import write_files
from loadgen.results.results import Results
from loadgen.results.summary import Summary, summary_of
from loadgen.results.verdict import Level
from loadgen.units import MB_BYTES, format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadgen.documents.model import Profile

MEMORY_RATIO = 5.0
# The full size of the demo: a thousand answers of a million bytes.
FULL_STORM_BYTES, FULL_PENDING_BYTES = 1_000_000_000, 300 * MB_BYTES
# Under this share of the full storm, memory other than that of answers hides the ratio.
JUDGED_SHARE = 0.5
# Healthy clients beside the silent one, from its first list until it leaves.
_BESIDE = """SELECT count(*) FILTER (there) AS due,
  count(*) FILTER (there AND got AND done < :until) AS answered,
  count(*) FILTER (there AND outcome = 'refused') AS refused,
  min(done) FILTER (got AND done >= :since AND due >= :since) - min(due) FILTER (there) AS silence,
  count(*) FILTER (due >= :until) AS due_after,
  count(*) FILTER (due >= :until AND got) AS answered_after
FROM (SELECT *, outcome = 'answered' AS got, due >= :since AND due < :until AS there
  FROM requests WHERE "group" <> :peer AND operation = 'list')"""


class DemoRun(NamedTuple):
    """A planned run of the demo; ``does`` says in words what the run's clients do."""

    name: str
    label: str
    does: str
    profile: Profile


class Ran(NamedTuple):
    """A finished run of the demo, with its summary.

    Attributes:
        beside: The answers that other clients got while one client never read.
        grown_bytes: The largest memory of all servers together at one moment, in excess of idle.
    """

    run: DemoRun
    directory: Path
    summary: Summary
    beside: Mapping[str, Any]
    grown_bytes: float

    @classmethod
    def of(cls, run: DemoRun, directory: Path) -> Self:
        """Judge a finished run of the demo, and write the files derived from its tables.

        Raises:
            KeyboardInterrupt: The run was interrupted.
        """
        with Results.open(directory) as results:
            verdict = write_files(results)
            if verdict.level is Level.INTERRUPTED:
                raise KeyboardInterrupt
            summary, beside = summary_of(results, verdict), beside_silent(results)
            return cls(run, directory, summary, beside, grown_bytes(results))

    def of_servers(self, figure: str) -> list[float]:
        """Return a metric's largest increase on each server; empty without samples."""
        found = (each.figures.get(figure) for each in self.summary.servers.values())
        return [(each.max or 0.0) - (each.first or 0.0) for each in found if each]

    @property
    def doubt(self) -> str:
        """A sentence if a slow load generator makes the run's times rough; empty otherwise."""
        late = [each.sentence for each in self.summary.findings if each.level == "unreliable"]
        if not late:
            return ""
        return (
            f"“{self.run.label}”: {late[0].rstrip('.')}. Times of this run are rough; the "
            "checks of counts and memory are not affected, and decide the exit code: it is not 98."
        )


@dataclass(frozen=True)
class Check:
    """A check of the demo: whether it passed, and a sentence with its numbers.

    ``neutral`` means that a passed check reproduces a fault of Pulsar.
    """

    name: str
    passed: bool
    sentence: str
    neutral: bool = False

    @property
    def mark(self) -> str:
        """A character for the check's outcome: ✓ passed, ! reproduced, ✗ failed."""
        return "✗" if not self.passed else "!" if self.neutral else "✓"


def beside_silent(results: Results) -> dict[str, Any]:
    """Count the answers to the other clients while one client never reads.

    The result is empty if every client reads.
    """
    for peer in results.document["clients"]:
        if peer["read"]["never"]:
            when = {"since": peer["after"], "until": peer["drop"]["at"]}
            return results.sql(_BESIDE, peer=peer["name"], **when)[0]
    return {}


def grown_bytes(results: Results) -> float:
    """Return the largest growth of all servers' memory over idle, in bytes; 0 without samples."""
    return max((row["y"] for row in results.sql(QUESTIONS["over-idle"].sql)), default=0.0)


def check_of(ran: Ran) -> Check:
    """Return a check that one run's findings are fine; a slow load generator does not count."""
    expected = {each.expectation for each in ran.summary.expectations}
    bad = [each for each in ran.summary.findings if each.level not in ("fine", "unreliable")]
    told = bad or [each for each in ran.summary.findings if each.source in expected]
    sentences = "; ".join(each.sentence.rstrip(".") for each in told)
    return Check(ran.run.name, not bad, f"“{ran.run.label}”: {sentences}.")


def checks_between(ran: Mapping[str, Ran], asked_bytes: int, *, measured: bool) -> list[Check]:
    """Return the checks that compare different runs with each other.

    Args:
        ran: The runs by name.
        asked_bytes: Number of bytes in all answers of a storm.
        measured: Whether the servers are processes with memory of their own.
    """
    off, pulsar, floodgate = ran["off"], ran["pulsar"], ran["floodgate"]
    refused = (
        f"Reproduced: with limits as in Pulsar {pulsar.summary.total.refused:,} of "
        f"{plural(pulsar.summary.total.requests, 'client')} were refused, in Floodgate "
        f"{floodgate.summary.total.refused:,}."
    )
    judged = measured and asked_bytes >= JUDGED_SHARE * FULL_STORM_BYTES
    return [
        effect_visible(off, asked_bytes),
        *([Check("refused", True, refused, neutral=True)] if pulsar.summary.total.refused else []),
        *([_memory_ratio(off, floodgate)] if judged else []),
        _starved(ran["stuck-pulsar"]),
    ]


def effect_visible(off: Ran, asked_bytes: int) -> Check:
    """Return a check that a storm without limits uses enough memory to show a difference."""
    unread = max(off.of_servers("unread"), default=0.0)
    needed = FULL_PENDING_BYTES * min(1.0, asked_bytes / FULL_STORM_BYTES)
    told = (
        f"without limits up to {format_bytes(unread)} of the {format_bytes(asked_bytes)} of topic "
        f"lists waited in one server for slow clients (at least {format_bytes(needed)} expected)."
    )
    if unread >= needed:
        return Check("effect_visible", True, f"Reproduced: {told}", neutral=True)
    too_small = (
        f"This storm is too small to show what limits do: {told} Use larger namespaces (the "
        "kernel's socket buffers hold the beginning of each list), more --clients or a lower "
        "--read-rate."
    )
    return Check("effect_visible", False, too_small, neutral=True)


def _memory_ratio(off: Ran, floodgate: Ran) -> Check:
    most, least = off.grown_bytes, floodgate.grown_bytes
    ratio = most / max(1, least)
    return Check(
        "memory_ratio",
        ratio >= MEMORY_RATIO,
        f"Broker and proxy together grew by at most {format_bytes(most)} without limits and by "
        f"{format_bytes(least)} with Floodgate, a ratio of {ratio:.1f} (at least {MEMORY_RATIO:g} "
        "expected).",
    )


def _starved(ran: Ran) -> Check:
    seen = ran.beside
    starved = seen["due"] > 0 and not seen["answered"]
    silence = seen["silence"]
    return Check(
        "stuck_starves_pulsar",
        starved and seen["answered_after"] == seen["due_after"] > 0,
        f"{'Reproduced' if starved else 'Not reproduced'}: as in Pulsar, one client that reads "
        f"nothing blocks all others. Of {plural(seen['due'], 'listing')} due while it was "
        f"connected, {seen['answered']:,} were answered in that time and {seen['refused']:,} "
        "refused; the time without any answer was "
        f"{'without end' if silence is None else format_seconds(silence)}. After it had left, "
        f"{seen['answered_after']:,} of {plural(seen['due_after'], 'listing')} were answered.",
        neutral=True,
    )
