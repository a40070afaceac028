"""``loadgen rehearse``: scenarios that simulate a restart or deploy of an operator's cluster.

Clients, topics, limits and links are those of :func:`storm_document`, so that a rehearsal and an
advice for the same files simulate the same storm.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Literal

from loadgen.alerts.rules import Alerts, alerts_of
from loadgen.alerts.told import seen_by_scrapes
from loadgen.errors import UsageError
from loadgen.results.questions import QUERIES
from loadgen.studies.advise.goal import percent
from loadgen.studies.advise.question import WATCHING, Question, as_text, storm_document
from loadgen.units import MB_BYTES, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.plan.group import Group
    from loadgen.results.results import Results

Event = Literal["restart", "rolling", "proxy", "deploy"]
_WARM_UP_SECONDS, _LONGEST_WARM_UP_SECONDS = 30.0, 900.0
_SECONDS_A_NAME, _SECONDS_A_REQUEST = 1.5e-6, 0.002
"""Seconds allowed for a list before the event, rather more than a real broker needs."""
_IN_TIME = 0.8
_PLACINGS, _FULL, _WORK = 1_000, 0.95, 2_000_000
_SPREAD = 2.0
# A watching client is back with its next watch; a polling client with its next list.
_AGAIN = """SELECT r.group AS "group", r.client, coalesce(min(done) FILTER (outcome = 'answered'
    AND sent >= :since AND done < :until
    AND operation = CASE WHEN family IN ('polite', 'java-watch') THEN 'watch' ELSE 'list' END
  ) - :since, CAST('Infinity' AS DOUBLE)) AS back_seconds
FROM requests r GROUP BY ALL"""
_BACK = """SELECT count(*) AS clients, coalesce(count_if(back_seconds <= :due), 0) AS back,
  quantile_disc(back_seconds, 0.5) AS half_seconds, max(back_seconds) AS last_seconds
FROM ({clients}) WHERE "group" = :name"""


@dataclass(frozen=True)
class Rehearsal:
    """A restart or deploy of an operator's cluster that is to be simulated.

    Attributes:
        question: The clients and namespaces of the whole cluster, with its present limits.
        brokers: Number of brokers that share namespaces and clients.
        away_seconds: Seconds between the end of a server and its return.
        notes: Sentences on how the simulated servers differ from the operator's.
    """

    question: Question
    event: Event
    brokers: int = 1
    away_seconds: float = 30.0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.event == "rolling" and self.brokers < 2:
            raise UsageError("--event rolling restarts one broker after the other: say --brokers 3")
        if self.event == "proxy" and not self.question.proxy:
            raise UsageError("--event proxy restarts a proxy, and there is none: add --proxy-conf")
        if self.event == "proxy" and self.brokers > 1:
            raise UsageError("--event proxy is about the proxy's limits: leave out --brokers")

    @cached_property
    def share(self) -> Question:
        """The clients and namespaces of the single broker that is simulated."""
        return self.question if self.brokers == 1 else fullest(self.question, self.brokers)

    @property
    def warm_up_seconds(self) -> float:
        """The length of the time before the event, in which all clients start, in seconds.

        It is 0 for a deploy, in which the start of the clients is the event.
        """
        if self.event == "deploy":
            return 0.0
        share = self.share
        listing = share.mean.topics * _SECONDS_A_NAME + _SECONDS_A_REQUEST
        reading = max(share.held_seconds(g.read, share.largest.answer_bytes) for g in share.groups)
        needed = 4 * share.clients * listing + (reading if math.isfinite(reading) else 0.0)
        return min(math.ceil(max(_WARM_UP_SECONDS, needed)), _LONGEST_WARM_UP_SECONDS)

    @property
    def moments(self) -> tuple[float, ...]:
        """When the event happens, once or repeatedly, in seconds since the run's start."""
        steps = self.brokers if self.event == "rolling" else 1
        apart = self.away_seconds + self.question.goal.back_within_seconds
        return tuple(self.warm_up_seconds + step * apart for step in range(steps))

    def due_seconds(self, group: Group) -> float:
        """Return the number of seconds in which a group's clients have to recover from the event.

        A polling client notices the event only with its next poll.
        """
        due = self.question.goal.back_within_seconds
        if self.event != "deploy":
            due += self.away_seconds if self.brokers == 1 else 0.0
            due += 0.0 if group.family in WATCHING else getattr(group, "period", 0.0)
        return due

    def told(self) -> Iterator[str]:
        """Yield sentences on how close the largest topic list is to the limits, and on the seed."""
        largest, today = self.share.largest, self.share.today
        sizes = {"heap": largest.charged_bytes, "direct": largest.answer_bytes}
        near = ", ".join(
            f"{percent(size / (limit * MB_BYTES))} of the {server}'s {memory} limit"
            for server, (memory, size) in product(today.servers, sizes.items())
            if (limit := getattr(today.of(server), f"{memory}_mb")) > 0
        )
        yield (
            f"The largest list, of {largest.topics:,} names in {largest.name}, takes "
            f"{near or 'no limit'}. Above a limit it is never answered, and no alert tells before: "
            "servers do not show how large lists are."
        )
        seed = self.question.seed
        yield f"This is one run, with the chances of seed {seed}: --set seed={seed + 1} has others."

    def assumed(self) -> Iterator[str]:
        """Yield sentences on how the simulation differs from the operator's cluster."""
        share, whole = self.share, self.question
        yield (
            f"{plural(share.clients, 'client')}, one namespace each in turn, the largest first; "
            f"{plural(len(share.listed), 'namespace')} with names of their mean length"
        )
        if self.brokers > 1:
            yield (
                f"one broker of {self.brokers} is played, the fullest: of {whole.clients:,} "
                f"clients and {plural(len(whole.listed), 'namespace')} it has what it has at most "
                "in 95 of 100 random placings; a namespace's watches are at its broker, polls "
                "spread evenly"
            )
            if self.event != "deploy":
                yield "one broker takes over all that it had, at once, and serves nobody else"
            if whole.proxy:
                yield "the proxy serves the clients of that broker alone"
        elif self.event == "restart":
            yield f"the broker is away for {format_seconds(self.away_seconds)}"
        elif self.event == "proxy":
            yield f"the proxy is away for {format_seconds(self.away_seconds)}"
        if self.event != "deploy":
            started = format_seconds(self.warm_up_seconds)
            yield f"before the event all clients started within {started}, and were back"
        yield "your files give limits, water marks, maxMessageSize and concurrent lookups, no more"
        yield from (each.rstrip(".") for each in self.notes)


def fullest(question: Question, brokers: int) -> Question:
    """Return the clients and namespaces of the broker, of several, that has the most to do.

    The result is as full as the fullest broker is at most in 95 of 100 random placings.

    All watches of a namespace are at one broker. Lists of polling clients can go to any broker: the
    fullest broker has the even share of these clients and two standard deviations more.
    """
    chance, listed = random.Random(question.seed), question.listed
    draws: list[tuple[int, list[int]]] = []
    for _ in range(max(20, min(_PLACINGS, _WORK // len(listed)))):
        placed: list[list[int]] = [[] for _ in range(brokers)]
        for number in range(len(listed)):
            placed[chance.randrange(brokers)].append(number)
        heaviest = max(placed, key=lambda own: sum(listed[n].charged_bytes for n in own))
        draws.append((sum(listed[n].charged_bytes for n in heaviest), heaviest))
    _, own = sorted(draws)[int(_FULL * len(draws))]
    groups = [
        each.model_copy(update={"count": count})
        for each in question.groups
        if (count := _clients_of(each, own, len(listed), brokers))
    ]
    return replace(question, groups=tuple(groups), namespaces=tuple(listed[n] for n in own))


def _clients_of(group: Group, own: list[int], namespaces: int, brokers: int) -> int:
    """Return the number of clients of a group that are at the fullest broker."""
    if group.family in WATCHING:
        each, more = divmod(group.count, namespaces)
        return sum(each + (number < more) for number in own)
    mean = group.count / brokers
    return min(group.count, math.ceil(mean + _SPREAD * math.sqrt(mean * (1 - 1 / brokers))))


def rehearsal_text(rehearsal: Rehearsal) -> str:
    """Return the scenario of a rehearsal as YAML."""
    share, warm_up = rehearsal.share, rehearsal.warm_up_seconds
    said = storm_document(share, share.today)
    said["name"] = f"rehearse-{rehearsal.event}"
    said["description"] = f"{_TITLES[rehearsal.event]}. Assumed: {'; '.join(rehearsal.assumed())}."
    if warm_up:
        for group in said["clients"]:
            rate = math.ceil(group["count"] / (_IN_TIME * warm_up))
            group["arrive"] = {"kind": "constant", "rate": rate}
        if rehearsal.brokers == 1:
            role = "proxy" if rehearsal.event == "proxy" else "broker"
            happening = [{"restart": role, "for": rehearsal.away_seconds}]
        else:  # Other brokers take over: only connections are lost.
            happening = [{"anew": each["name"]} for each in said["clients"]]
        said["shocks"] = [{"at": at, **each} for at in rehearsal.moments for each in happening]
        due = max(map(rehearsal.due_seconds, share.groups))
        hold = max(rehearsal.moments) - warm_up + due
        said["phases"] = {"warm_up": warm_up, "measure": 1, "hold": hold, "drain": 5}
        said["expect"] = ["clients.back == 100%", said["expect"][-1]]
    return as_text(said)


_TITLES: Mapping[Event, str] = {
    "restart": "A broker is restarted",
    "rolling": "Brokers are restarted one after the other",
    "proxy": "A proxy is restarted",
    "deploy": "All consumers start anew",
}


# -- the outcome ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rehearsed:
    """The result of a rehearsal: recovery of clients, refused requests, memory and alerts.

    Attributes:
        back: A row for each group of clients, about the event with the longest return. It also has
            the group's lists and watches in the whole run, and the refused ones.
        reasons: The numbers of requests without an answer, by reason.
        seen: The servers' peaks of memory and waiting requests, real and as scraped by Prometheus.
        missed: For each group with too many late clients, a sentence.
    """

    back: Sequence[dict[str, Any]]
    reasons: Sequence[dict[str, Any]]
    seen: Sequence[dict[str, Any]]
    alerts: Alerts
    missed: Mapping[str, str]


def rehearsed(rehearsal: Rehearsal, run: Results, rules: Path) -> Rehearsed:
    """Compute the result of a finished rehearsal from its run.

    Raises:
        UsageError: The alerting rules cannot be read.
    """
    back = [_back(rehearsal, run, each) for each in rehearsal.share.groups]
    share, missed = rehearsal.question.goal.refused_share, dict[str, str]()
    for row in back:
        late = row["clients"] - row["back"]
        if late > row["clients"] * share + 1e-6:
            told = f"{late:,} of {row['clients']:,} {row['group']} not back"
            missed[f"{row['group']}.back"] = f"{told} within {format_seconds(row['due_seconds'])}"
    seen = seen_by_scrapes(run)
    return Rehearsed(back, run.query("reasons"), seen, alerts_of(run, rules), missed)


def _back(rehearsal: Rehearsal, run: Results, group: Group) -> dict[str, Any]:
    due = rehearsal.due_seconds(group)
    asked = {"name": group.name, "due": due}
    if rehearsal.event == "deploy":
        rows = run.sql(_BACK.replace("{clients}", QUERIES["clients"].sql), **asked)
    else:
        text, moments = _BACK.replace("{clients}", _AGAIN), (*rehearsal.moments, math.inf)
        rows = [run.sql(text, since=a, until=b, **asked)[0] for a, b in pairwise(moments)]
    worst = min(rows, key=lambda row: (row["back"], -(row["last_seconds"] or 0.0)))
    asked = next((r for r in run.query("back") if r["group"] == group.name), {})
    counted = {name: asked.get(name, 0) for name in ("asked", "refused")}
    return {"group": group.name, "due_seconds": due, **worst, **counted}
