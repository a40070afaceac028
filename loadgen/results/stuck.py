"""The figures of a run of the scenario ``stuck``, as values: its peers, and its three phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Phase:
    """The listings that were due in one phase of a run.

    Attributes:
        requests: Listings that were due.
        answered: How many of them were answered, whenever that was.
        answered_in_phase: How many before the phase was over.
        refused: How many were refused.
        clients_refused: How many clients were refused at least once.
        failed: How many were neither answered nor refused.
        p50_seconds: The median of how long all that was due took until it was answered; None
            if that one was not answered.
        p99_seconds: The 99th percentile of the same.
    """

    requests: int
    answered: int
    answered_in_phase: int
    refused: int
    clients_refused: int
    failed: int
    p50_seconds: float | None
    p99_seconds: float | None

    @property
    def answered_afterwards(self) -> int:
        """The number of listings that were answered only when the phase was over."""
        return self.answered - self.answered_in_phase


@dataclass(frozen=True)
class StuckFigures:
    """The stuck peers of a run and what they did to the healthy clients. Units: seconds.

    Attributes:
        peers: Stuck peers in all.
        pipelined: Listings that each asked for.
        unreachable: How many got no connection.
        closed: How many the server closed.
        asked_seconds: When the first of them asked, after T0; None if none did.
        gone_seconds: When the last of them was gone.
        first_closed_after_seconds: From asking to the first that the server closed.
        last_closed_after_seconds: To the last one.
        first_answer_latency_seconds: How long the first answer to what was due since they asked
            took, from when it was due itself.
        nobody_answered_seconds: From the first listing that was due since they asked to that
            answer.
        bytes_read: What they read, together.
        connections_lost: Healthy connections that ended before the run did.
        before: What was due before they asked.
        stuck: What was due while at least one was there.
        after: What was due when all were gone.
    """

    peers: int
    pipelined: int
    unreachable: int
    closed: int
    asked_seconds: float | None
    gone_seconds: float | None
    first_closed_after_seconds: float | None
    last_closed_after_seconds: float | None
    first_answer_latency_seconds: float | None
    nobody_answered_seconds: float | None
    bytes_read: int
    connections_lost: int
    before: Phase
    stuck: Phase
    after: Phase


def parse_stuck(document: Mapping[str, Any] | None) -> StuckFigures | None:
    """Turn what a summary says of stuck peers into figures; None where it says nothing.

    Raises:
        KeyError: A field is missing.
        TypeError: A field has the wrong type.
    """
    if document is None:
        return None
    phases = document["phases"]
    return StuckFigures(
        peers=int(document["peers"]),
        pipelined=int(document["pipelined"]),
        unreachable=int(document["unreachable"]),
        closed=int(document["closed"]),
        asked_seconds=_moment(document["asked_seconds"]),
        gone_seconds=_moment(document["gone_seconds"]),
        first_closed_after_seconds=_moment(document["first_closed_after_seconds"]),
        last_closed_after_seconds=_moment(document["last_closed_after_seconds"]),
        first_answer_latency_seconds=_moment(document["first_answer_latency_seconds"]),
        nobody_answered_seconds=_moment(document["nobody_answered_seconds"]),
        bytes_read=int(document["bytes_read"]),
        connections_lost=int(document["connections_lost"]),
        before=_parse_phase(phases["before"]),
        stuck=_parse_phase(phases["stuck"]),
        after=_parse_phase(phases["after"]),
    )


def _moment(value: float | None) -> float | None:
    return None if value is None else float(value)


def _parse_phase(document: Mapping[str, Any]) -> Phase:
    latency = document["latency_seconds"] or {}
    return Phase(
        requests=int(document["requests"]),
        answered=int(document["answered"]),
        answered_in_phase=int(document["answered_in_phase"]),
        refused=int(document["refused"]),
        clients_refused=int(document["clients_refused"]),
        failed=int(document["failed"]),
        p50_seconds=_moment(latency.get("p50")),
        p99_seconds=_moment(latency.get("p99")),
    )
