"""The goal that topic-list limits have to meet in a restart storm, and the storm's outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from loadgen.engine.rows import RUN_ENDED
from loadgen.results.questions import QUERIES
from loadgen.results.results import Results
from loadgen.results.verdict import generator_limits
from loadgen.units import MB_BYTES, format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """The outcome of a simulated or real restart storm, such as how many clients recovered.

    Attributes:
        back: Number of clients that were back before the goal's time was over.
        slowest_seconds: When the last client was back; None if no client was back.
        requests: Number of list and watch requests.
        refused: Number of refused requests among them, counted as in the shipped query ``clients``.
        accounted: The largest memory, heap and direct, that each server's limiter held, in bytes.
        reasons: Texts of refusals, each with the number of refused requests.
        stalled_seconds: Seconds in which hundreds of requests waited for heap, and hardly one was
            answered although direct memory was free: the growth stall, also if temporary.
        limited: The reason why the clients' own machine was too slow; empty if it was not.
    """

    clients: int
    back: int
    slowest_seconds: float | None
    requests: int
    refused: int
    accounted: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    stalled_seconds: int = 0
    limited: str = ""

    @property
    def refused_share(self) -> float:
        """The share of requests that were refused."""
        return self.refused / self.requests if self.requests else 0.0

    def as_good_as(self, other: Outcome) -> bool:
        """Return True if the outcome is about as good as another one, and has no growth stall.

        The numbers of recovered clients and of refused requests are compared.
        """
        back = self.back >= (1 - _ALIKE) * other.back
        refused = self.refused_share <= other.refused_share + _ALIKE
        return back and refused and not self.stalled_seconds


@dataclass(frozen=True)
class Goal:
    """The goal that limits have to meet: recovery time, refused requests and memory.

    Attributes:
        back_within_seconds: Time in which all clients have to be back, except for
            ``refused_share``.
        refused_share: The largest share of requests that may be refused or not answered in time.
        accounted_mb: The largest memory that each server's limiter may hold, heap and direct
            together; one MB is 1,048,576 bytes, as in Pulsar's keys.
    """

    back_within_seconds: float = 60.0
    refused_share: float = 0.001
    accounted_mb: int = 512

    def __str__(self) -> str:
        return (
            f"all clients back within {self.back_within_seconds:g} s, at most "
            f"{100 * self.refused_share:g} % refused, at most {self.accounted_mb:,} MB in each "
            "limiter"
        )

    def misses(self, outcome: Outcome) -> list[str]:
        """Return words on each part of the goal that an outcome misses; empty if it misses none."""
        found, late = [], outcome.clients - outcome.back
        # A share as a float is not exact.
        if late > outcome.clients * self.refused_share + 1e-6:
            found.append(f"{percent(late / outcome.clients)} late")
        if outcome.refused > outcome.requests * self.refused_share + 1e-6:
            found.append(f"{percent(outcome.refused_share)} refused")
        if outcome.stalled_seconds:
            found.append(f"a growth stall of {outcome.stalled_seconds} s")
        for server, held in outcome.accounted.items():
            if held > self.accounted_mb * MB_BYTES:
                found.append(f"the {server}'s limiter held {format_bytes(held)}")
        return found

    def told(self, outcome: Outcome) -> str:
        """Describe in a few words whether an outcome meets the goal."""
        missed, last = self.misses(outcome), outcome.slowest_seconds
        if missed:
            return f"goal missed: {', '.join(missed)}"
        if last is None:
            return "goal met, no client asked"
        return f"goal met in {format_seconds(last)}"


def percent(share: float) -> str:
    """Format a share as a percentage with two digits."""
    return f"{100 * share:.2g} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


_CLIENTS = """SELECT count(*) AS clients, coalesce(count_if(back_seconds <= :within), 0) AS back,
  max(CASE WHEN back_seconds < CAST('Infinity' AS DOUBLE) THEN back_seconds END) AS slowest_seconds,
  coalesce(sum(asked), 0) AS requests, coalesce(sum(refused), 0) AS refused FROM ({clients})"""


# From scrape to scrape of a second or so: requests waiting for heap, answers, work of servers.
_STALLED = """WITH told AS (SELECT floor(seconds) AS second,
      max(value) FILTER (figure = 'heap.waiting') AS heap,
      max(value) FILTER (figure = 'direct.waiting') AS direct,
      max(value) FILTER (figure = 'cpu.seconds') AS spent FROM samples GROUP BY ALL),
  looks AS (SELECT second, lag(second) OVER o AS since, least(heap, lag(heap) OVER o) AS heap,
      greatest(direct, lag(direct) OVER o) AS direct, spent - lag(spent) OVER o AS busy
    FROM told WINDOW o AS (ORDER BY second)),
  answers AS (SELECT floor(done) AS second, count(*) AS n FROM requests
    WHERE operation IN ('list', 'watch') AND outcome = 'answered' GROUP BY ALL),
  pace AS (SELECT sum(n) / (max(second) - min(second) + 1) AS mean, max(second) AS last
    FROM answers)
  SELECT coalesce(sum(second - since), 0) FROM looks CROSS JOIN pace
  WHERE heap >= :waiting AND direct = 0 AND busy <= :busy * (second - since) AND second < last
    AND (SELECT coalesce(sum(n), 0) FROM answers a
      WHERE a.second BETWEEN since AND looks.second - 1) <= :share * mean * (second - since)"""
_STALL = {"waiting": 100, "busy": 0.4, "share": 0.2}
"""Thresholds of a stall: waiting requests, busy share of the processor, share of the mean rate."""
_ALIKE, _MOST_REASONS = 0.02, 100


def outcome_of(goal: Goal, directory: Path) -> Outcome:
    """Compute the outcome of a restart storm from its run directory."""
    inner, within = QUERIES["clients"].sql, goal.back_within_seconds
    with Results.open(directory) as results:
        (found,) = results.sql(_CLIENTS.replace("{clients}", inner), within=within)
        stalled = results.value(_STALLED, **_STALL)
        limited = "" if results.run.get("place") == "virtual" else generator_limits(results)
        figures = {(row["process"], row["figure"]): row["max"] for row in results.query("servers")}
        told = results.query("reasons", most=_MOST_REASONS)
    reasons = {row["reason"] or row["outcome"]: row["requests"] for row in told}
    reasons.pop(RUN_ENDED, None)
    held = dict.fromkeys((process for process, _ in figures), 0.0)
    for process, kind in product(held, ("heap", "direct")):
        used = figures.get((process, f"{kind}.used"), 0.0)
        held[process] += figures.get((process, f"{kind}.high"), used)
    return Outcome(
        **found,
        accounted=held,
        reasons=reasons,
        stalled_seconds=int(stalled),
        limited=limited,
    )
