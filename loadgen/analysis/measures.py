"""The measures that a threshold may name, of requests, clients and servers, each with its unit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loadgen.clients.records import Outcome

ALL_REQUESTS = "requests"
CLIENTS = "clients"
SERVERS = ("broker", "proxy")
OPERATIONS = (
    "list",
    "watch",
    "update",
    "create",
    "delete",
    "lookup",
    "subscribe",
    "publish",
    "deliver",
    "receive",
    "connect",
)
"""Operations of requests, as their rows call them."""
SELECTORS = ("family", "group", "tenant", "namespace")
"""The columns by which requests and clients can be chosen."""
FAILED = "failed"
"""Every outcome but an answer and a refusal."""


class Unit(StrEnum):
    """The units of measures; each value of a threshold is written in its measure's."""

    SECONDS = "seconds"
    SHARE = "share"
    COUNT = "count"
    BYTES = "bytes"


@dataclass(frozen=True)
class Measure:
    """A measure as a table lists it.

    Attributes:
        name: What follows the subject's dot; ``pN`` stands for any percentile.
        limited: Whether it may be compared with the server's own ``limit``.
    """

    name: str
    unit: Unit
    meaning: str
    limited: bool = False


def _outcomes() -> tuple[Measure, ...]:
    names = [*(str(each) for each in Outcome), FAILED]
    shares = [Measure(f"{each}.rate", Unit.SHARE, f"share of requests {each}") for each in names]
    counts = [Measure(f"{each}.count", Unit.COUNT, f"number of requests {each}") for each in names]
    return (*shares, *counts)


def _limiter(kind: str) -> tuple[Measure, ...]:
    return (
        Measure(f"{kind}.used.max", Unit.BYTES, f"most {kind} memory held", limited=True),
        Measure(f"{kind}.used.final", Unit.BYTES, f"{kind} memory held at the end", limited=True),
        Measure(f"{kind}.waiting.max", Unit.COUNT, f"most requests waiting for {kind} memory"),
        Measure(f"{kind}.timeouts.count", Unit.COUNT, f"requests that waited for {kind} in vain"),
    )


OF_REQUESTS = (
    Measure("response.pN", Unit.SECONDS, "of those answered, from the intended start"),
    Measure("response.max", Unit.SECONDS, "the slowest of them"),
    Measure("service.pN", Unit.SECONDS, "of those answered, from the true start"),
    Measure("service.max", Unit.SECONDS, "the slowest of them"),
    *_outcomes(),
)
OF_CLIENTS = (
    Measure("back.rate", Unit.SHARE, "share of clients that were back"),
    Measure("back.count", Unit.COUNT, "number of clients that were back"),
    Measure("back.pN", Unit.SECONDS, "of all clients, from the intended start until back"),
    Measure("back.max", Unit.SECONDS, "the last of them"),
    Measure("listings.max", Unit.COUNT, "most listings that a client asked for"),
    Measure("reconnects.max", Unit.COUNT, "most connections that a client made again"),
    Measure("reconnects.min", Unit.COUNT, "fewest connections that a client made again"),
)
OF_SERVERS = (
    *_limiter("heap"),
    *_limiter("direct"),
    Measure("resident.max", Unit.BYTES, "most memory of the process"),
    Measure("resident.rise", Unit.BYTES, "the same, over what it had before the run"),
    Measure("unread.max", Unit.BYTES, "most bytes that peers had not read"),
    Measure("again.seconds", Unit.SECONDS, "from its restart until all clients had an answer"),
    Measure("cpu.seconds", Unit.SECONDS, "processor time of the process"),
)


def subjects() -> tuple[str, ...]:
    """Return all that a threshold may be about."""
    return (*OPERATIONS, ALL_REQUESTS, CLIENTS, *SERVERS)


def measures_of(subject: str) -> tuple[Measure, ...]:
    """Return the measures of a subject."""
    if subject in SERVERS:
        return OF_SERVERS
    return OF_CLIENTS if subject == CLIENTS else OF_REQUESTS
