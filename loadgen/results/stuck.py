"""The figures of a run of the scenario ``stuck``, as values: its peers, and its three phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.results.latency import read_figures

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Phase:
    """The listings that were due in one phase of a run.

    Attributes:
        answered: How many of them were answered, whenever that was.
        answered_in_phase: How many before the phase was over.
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
        pipelined: Listings that each asked for.
        asked_seconds: When the first of them asked, after T0; None if none did.
        gone_seconds: When the last of them was gone.
        first_closed_after_seconds: From asking to the first that the server closed.
        last_closed_after_seconds: To the last one.
        first_answer_latency_seconds: How long the first answer to what was due since they asked
            took, from when it was due itself.
        nobody_answered_seconds: From the first listing that was due since they asked to that
            answer.
        connections_lost: Healthy connections that ended before the run did.
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
    phases = {name: _parse_phase(each) for name, each in document["phases"].items()}
    return read_figures(StuckFigures, document, **phases)


def _parse_phase(document: Mapping[str, Any]) -> Phase:
    latency = document["latency_seconds"] or {}
    percentiles = {f"{name}_seconds": latency.get(name) for name in ("p50", "p99")}
    return read_figures(Phase, document, **percentiles)
