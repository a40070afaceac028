"""The measures that an expectation may name: of requests, clients and servers, with their SQL."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

from loadgen.behaviours.registry import AnyGroup
from loadgen.engine.rows import Outcome

ALL_REQUESTS, CLIENTS, SERVERS = "requests", "clients", ("broker", "proxy")
OPERATIONS = tuple(
    dict.fromkeys(each for kind in get_args(get_args(AnyGroup)[0]) for each in kind.operations)
)
"""Operations of requests, as their rows call them."""
SELECTORS = {
    "family": "{row}.family",
    "group": "{row}.group",
    "tenant": "split_part({row}.namespace, '/', 1)",
    "namespace": "{row}.namespace",
}
"""What requests and clients can be chosen by, and where it stands in a row."""
_FAILED = "r.outcome NOT IN ('answered', 'refused')"
_BACK = "c.back_seconds < CAST('Infinity' AS DOUBLE)"


class Unit(StrEnum):
    """The units of measures; each value of an expectation is written in its measure's."""

    SECONDS = "seconds"
    SHARE = "share"
    COUNT = "count"
    BYTES = "bytes"


@dataclass(frozen=True)
class Measure:
    """A measure as a table lists it.

    Attributes:
        name: What follows the subject's dot; ``pN`` stands for any percentile.
        sql: The figure, over rows ``r`` of requests or ``c`` of clients; of a percentile, what it
            is of. Of a server: the figures that tell it, the best first, each with its column.
        limited: The figure that is the server's own limit of it.
    """

    name: str
    unit: Unit
    meaning: str
    sql: str
    limited: str = ""


def _counted(name: str, condition: str, what: str) -> tuple[Measure, ...]:
    share = f"avg(CASE WHEN {condition} THEN 1E0 ELSE 0E0 END)"
    return (
        Measure(f"{name}.rate", Unit.SHARE, f"share of {what}", share),
        Measure(
            f"{name}.count", Unit.COUNT, f"number of {what}", f"coalesce(count_if({condition}), 0)"
        ),
    )


def _limiter(kind: str) -> tuple[Measure, ...]:
    limit, waited = f"{kind}.limit", f"requests that waited for {kind} in vain"
    most = f"{kind}.high max, {kind}.used max"
    return (
        Measure(f"{kind}.used.max", Unit.BYTES, f"most {kind} memory held", most, limit),
        Measure(f"{kind}.used.final", Unit.BYTES, "held at the end", f"{kind}.used last", limit),
        Measure(f"{kind}.waiting.max", Unit.COUNT, "most that waited", f"{kind}.waiting max"),
        Measure(f"{kind}.timeouts.count", Unit.COUNT, waited, f"{kind}.timeouts rise"),
    )


_RESIDENT = "resident.high max, resident max"
OF_REQUESTS = (
    Measure("response.pN", Unit.SECONDS, "since due; never for who got none", "r.response_seconds"),
    Measure("response.max", Unit.SECONDS, "the slowest of them", "max(r.response_seconds)"),
    Measure("service.pN", Unit.SECONDS, "the same, since it was sent", "r.service_seconds"),
    Measure("service.max", Unit.SECONDS, "the slowest of them", "max(r.service_seconds)"),
    *(
        measure
        for each in Outcome
        for measure in _counted(str(each), f"r.outcome = '{each}'", f"requests {each}")
    ),
    *_counted("failed", _FAILED, "requests neither answered nor refused"),
    Measure("topics.min", Unit.COUNT, "fewest names of a listing", "min(r.topics)"),
    Measure("topics.max", Unit.COUNT, "most names of a listing", "max(r.topics)"),
)
OF_CLIENTS = (
    *_counted("back", _BACK, "clients that were back"),
    Measure("back.pN", Unit.SECONDS, "of all clients, until back", "c.back_seconds"),
    Measure("back.max", Unit.SECONDS, "the last of them", "max(c.back_seconds)"),
    Measure("listings.max", Unit.COUNT, "most listings of a client", "max(c.listings)"),
    Measure("reconnects.max", Unit.COUNT, "most connections a client lost", "max(c.reconnects)"),
    Measure("reconnects.min", Unit.COUNT, "fewest of them", "min(c.reconnects)"),
)
OF_SERVERS = (
    *_limiter("heap"),
    *_limiter("direct"),
    Measure("resident.max", Unit.BYTES, "most memory of the process", _RESIDENT),
    Measure("resident.rise", Unit.BYTES, "the same, over what it had before", _RESIDENT),
    Measure("unread.max", Unit.BYTES, "most that peers left unread", "unread.high max, unread max"),
    Measure("again.seconds", Unit.SECONDS, "from its restart until all had an answer", ""),
    Measure("cpu.seconds", Unit.SECONDS, "processor time of the process", "cpu.seconds rise"),
)


def measures_of(subject: str) -> tuple[Measure, ...]:
    """Return the measures of a subject."""
    if subject in SERVERS:
        return OF_SERVERS
    return OF_CLIENTS if subject == CLIENTS else OF_REQUESTS


def subjects() -> tuple[str, ...]:
    """Return all that an expectation may be about."""
    return (*OPERATIONS, ALL_REQUESTS, CLIENTS, *SERVERS)
