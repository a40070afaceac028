"""What came of a rehearsal: who was back when, refusals, memory, and what Prometheus says of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from loadgen.alerts.rules import Alerts, alerts_of
from loadgen.alerts.told import seen_by_scrapes
from loadgen.results.questions import QUERIES
from loadgen.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.plan.group import Group
    from loadgen.results.results import Results
    from loadgen.studies.rehearsal import Rehearsal

# A client that watches is back when its watch stands again; others, when they have their next list.
_AGAIN = """SELECT r.group AS "group", r.client, coalesce(min(done) FILTER (outcome = 'answered'
    AND sent >= :since AND done < :until
    AND operation = CASE WHEN family IN ('polite', 'java-watch') THEN 'watch' ELSE 'list' END
  ) - :since, CAST('Infinity' AS DOUBLE)) AS back_seconds
FROM requests r GROUP BY ALL"""
_BACK = """SELECT count(*) AS clients, count_if(back_seconds <= :due) AS back,
  quantile_disc(back_seconds, 0.5) AS half_seconds, max(back_seconds) AS last_seconds
FROM ({clients}) WHERE "group" = :name"""
_ASKED = """SELECT count(*) AS asked, count_if(outcome IN ('refused', 'timeout', 'wrong')
    AND NOT coalesce(reason, '') LIKE 'ServiceNotReady%') AS refused
FROM measured WHERE operation IN ('list', 'watch')"""


@dataclass(frozen=True)
class Rehearsed:
    """The answer of a rehearsal.

    Attributes:
        back: A row for each group of clients: of several events the one that took longest.
        reasons: Requests without an answer, by reason.
        seen: What servers held, and the most of it that a scrape sees.
        missed: Where it falls short of the goal; empty: it does not.
    """

    back: Sequence[dict[str, Any]]
    reasons: Sequence[dict[str, Any]]
    seen: Sequence[dict[str, Any]]
    alerts: Alerts
    missed: tuple[str, ...]


def rehearsed(rehearsal: Rehearsal, run: Results, rules: Path) -> Rehearsed:
    """Judge a finished rehearsal.

    Raises:
        UsageError: The rules cannot be read.
    """
    back = [_back(rehearsal, run, each) for each in rehearsal.share.groups]
    share, missed = rehearsal.question.goal.refused_share, []
    for row in back:
        late = row["clients"] - row["back"]
        if late > row["clients"] * share + 1e-6:
            told = f"{late:,} of {row['clients']:,} {row['group']} not back"
            missed.append(f"{told} within {format_seconds(row['due_seconds'])}")
    (asked,) = run.sql(_ASKED)
    if asked["refused"] > asked["asked"] * share + 1e-6:
        told = f"{asked['refused']:,} of {asked['asked']:,} lists and watches refused"
        missed.append(f"{told} (at most {100 * share:g} %)")
    seen = seen_by_scrapes(run)
    return Rehearsed(back, run.query("reasons"), seen, alerts_of(run, rules), tuple(missed))


def _back(rehearsal: Rehearsal, run: Results, group: Group) -> dict[str, Any]:
    due = rehearsal.due_seconds(group)
    asked = {"name": group.name, "due": due}
    if rehearsal.event == "deploy":
        rows = run.sql(_BACK.replace("{clients}", QUERIES["clients"].sql), **asked)
    else:
        text, moments = _BACK.replace("{clients}", _AGAIN), (*rehearsal.moments, math.inf)
        rows = [run.sql(text, since=a, until=b, **asked)[0] for a, b in pairwise(moments)]
    worst = min(rows, key=lambda row: (row["back"], -(row["last_seconds"] or 0.0)))
    return {"group": group.name, "due_seconds": due, **worst}
