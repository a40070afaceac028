"""The measures that an expectation may name: of requests, clients and servers, with their SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from loadgen.behaviours.registry import AnyGroup
from loadgen.engine.rows import Outcome
from loadgen.results.units import Unit
from loadgen.results.vocabulary import limit_of

ALL_REQUESTS, CLIENTS, SERVERS = "requests", "clients", ("broker", "proxy")
OPERATIONS = tuple(
    dict.fromkeys(each for kind in get_args(get_args(AnyGroup)[0]) for each in kind.operations)
)
"""Operations of requests, as their rows call them."""
SELECTORS = {
    "family": "r.family",
    "group": "r.group",
    "tenant": "split_part(r.namespace, '/', 1)",
    "namespace": "r.namespace",
}
"""What requests and clients can be chosen by, and where it stands in a row."""


@dataclass(frozen=True)
class Measure:
    """A measure; docs/measuring.md says what each means.

    Attributes:
        name: What follows the subject's dot; ``pN`` stands for any percentile.
        sql: The figure, over rows ``r`` of requests, of clients, or of the question about servers;
            of a percentile, what it is of.
        limited: The figure that is the server's own limit of it.
        noun: What is counted.
    """

    name: str
    unit: Unit
    sql: str
    limited: str = ""
    noun: str = ""


_SECONDS_TAKEN = """(SELECT min(least(w.measured_until, n.ended) - w.measured_from)
  FROM runs w CROSS JOIN (SELECT max(done) AS ended FROM requests) n)"""
"""While figures are taken; a run of which nothing is left to do ends earlier."""


def _counted(name: str, condition: str, noun: str = "requests") -> tuple[Measure, ...]:
    one = f"CASE WHEN {condition} THEN 1E0 ELSE 0E0 END"
    return (
        Measure(f"{name}.rate", Unit.SHARE, f"avg({one})"),
        Measure(f"{name}.count", Unit.COUNT, f"coalesce(sum({one}), 0)", noun=noun),
        Measure(f"{name}.per_second", Unit.RATE, f"sum({one}) / nullif({_SECONDS_TAKEN}, 0)"),
    )


def _told(figure: str, column: str) -> str:
    return f"max(CASE WHEN r.figure = '{figure}' THEN {column} END)"


def _limiter(kind: str) -> tuple[Measure, ...]:
    used, limit = f"{kind}.used", f"{kind}.limit"
    waiting, timeouts = f"{kind}.waiting", f"{kind}.timeouts"
    return (
        Measure(f"{used}.max", Unit.BYTES, _told(used, "r.max"), limit),
        Measure(f"{used}.final", Unit.BYTES, _told(used, "r.last"), limit),
        Measure(f"{waiting}.max", Unit.COUNT, _told(waiting, "r.max"), noun="requests"),
        Measure(f"{timeouts}.count", Unit.COUNT, _told(timeouts, "r.rise"), noun="requests"),
    )


OF_REQUESTS = (
    Measure("response.pN", Unit.SECONDS, "r.response_seconds"),
    Measure("response.max", Unit.SECONDS, "max(r.response_seconds)"),
    Measure("service.pN", Unit.SECONDS, "r.service_seconds"),
    Measure("service.max", Unit.SECONDS, "max(r.service_seconds)"),
    *(each for out in Outcome for each in _counted(str(out), f"r.outcome = '{out}'")),
    *_counted("failed", "r.outcome NOT IN ('answered', 'refused')"),
    Measure("topics.min", Unit.COUNT, "min(r.topics)", noun="topics"),
    Measure("topics.max", Unit.COUNT, "max(r.topics)", noun="topics"),
)
OF_CLIENTS = (
    *_counted("back", "r.back_seconds < CAST('Infinity' AS DOUBLE)", "clients")[:2],
    Measure("back.pN", Unit.SECONDS, "r.back_seconds"),
    Measure("back.max", Unit.SECONDS, "max(r.back_seconds)"),
    Measure("listings.max", Unit.COUNT, "max(r.listings)", noun="lists"),
    Measure("reconnects.max", Unit.COUNT, "max(r.reconnects)", noun="connections"),
    Measure("reconnects.min", Unit.COUNT, "min(r.reconnects)", noun="connections"),
)
OF_SERVERS = (
    *_limiter("heap"),
    *_limiter("direct"),
    Measure("resident.max", Unit.BYTES, _told("resident", "r.max")),
    Measure("resident.rise", Unit.BYTES, _told("resident", "r.max - r.first")),
    Measure("unread.max", Unit.BYTES, _told("unread", "r.max")),
    *(
        Measure(f"{used}.max", Unit.BYTES, _told(used, "r.max"), limit_of(used))
        for used in ("jvm.heap.used", "jvm.direct.used")
    ),
    Measure("again.seconds", Unit.SECONDS, ""),
    Measure("cpu.seconds", Unit.SECONDS, _told("cpu.seconds", "r.rise")),
)


def measures_of(subject: str) -> tuple[Measure, ...]:
    """Return the measures of a subject."""
    if subject in SERVERS:
        return OF_SERVERS
    return OF_CLIENTS if subject == CLIENTS else OF_REQUESTS


def subjects() -> tuple[str, ...]:
    """Return all that an expectation may be about."""
    return (*OPERATIONS, ALL_REQUESTS, CLIENTS, *SERVERS)
