"""Sums up a run beside stuck peers: those peers, and three phases.

A request belongs to the phase in which it was due: before any stuck peer had asked, while at least
one was there, after the last one was gone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.clients.records import Outcome
from loadgen.results.latency import percentiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from loadgen.clients.records import TaskReport


PEERS_NAME = "stuck-peers.parquet"
PEER_ROWS = pa.schema(
    [
        pa.field("peer", pa.int32(), nullable=False),
        pa.field("namespace", pa.string(), nullable=False),
        pa.field("asked_seconds", pa.float64()),
        pa.field("gone_seconds", pa.float64()),
        pa.field("end", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("sent", pa.int64(), nullable=False),
        pa.field("held_up_seconds", pa.float64()),
    ]
)


class PeerEnd(StrEnum):
    """The ways in which a stuck peer's connection ends."""

    CLOSED = "closed by the server"
    LEFT = "left"
    UNREACHABLE = "unreachable"


@dataclass(slots=True)
class PeerRecord:
    """The record of one stuck peer; times are seconds relative to the agreed T0.

    Attributes:
        asked_seconds: When it sent its requests; None if it never did.
        gone_seconds: When its connection was over; None if it never had one.
        end: How it ended; None while it lasts.
        bytes: Bytes that it read after it had asked.
        sent: Requests or messages that it has sent.
        held_up_seconds: Since when the server takes no more from it; None if it does.
    """

    peer: int
    namespace: str
    asked_seconds: float | None = None
    gone_seconds: float | None = None
    end: PeerEnd | None = None
    reason: str = ""
    bytes: int = 0
    sent: int = 0
    held_up_seconds: float | None = None


def peer_records(reports: Iterable[TaskReport]) -> list[PeerRecord]:
    """Return the stuck peers that tasks report, in order of their numbers."""
    found = [PeerRecord(**row) for report in reports for row in report.details]
    return sorted(found, key=lambda peer: peer.peer)


def write_peers(directory: Path, reports: Iterable[TaskReport]) -> None:
    """Write stuck-peers.parquet: one row for each stuck peer."""
    rows = [asdict(peer) for peer in peer_records(reports)]
    pq.write_table(pa.Table.from_pylist(rows, schema=PEER_ROWS), directory / PEERS_NAME)


_COLUMNS = ("client", "intended_start_seconds", "finished_seconds", "outcome")


@dataclass(frozen=True)
class _Ended:
    """One request that ended. Units: seconds since T0."""

    client: int
    due_seconds: float
    finished_seconds: float
    outcome: str


def stuck_document(pipelined: int, reports: Sequence[TaskReport]) -> dict[str, Any]:
    """Describe the stuck peers and how the healthy clients fared before, with and after them.

    Closings count from when the first peer asked; a moment that never came is None.
    """
    peers = peer_records(reports)
    asked = min((p.asked_seconds for p in peers if p.asked_seconds is not None), default=None)
    gone = max((p.gone_seconds for p in peers if p.gone_seconds is not None), default=None)
    closed = sorted(_closings(peers))
    requests = [each for report in reports for each in _ended(report)]
    return {
        "peers": len(peers),
        "pipelined": pipelined,
        "unreachable": sum(peer.end == PeerEnd.UNREACHABLE for peer in peers),
        "closed": len(closed),
        "asked_seconds": asked,
        "gone_seconds": gone,
        "first_closed_after_seconds": _since(asked, closed[0] if closed else None),
        "last_closed_after_seconds": _since(asked, closed[-1] if closed else None),
        **_first_answer(requests, asked),
        "bytes_read": sum(peer.bytes for peer in peers),
        "connections_lost": sum(report.facts.connections_lost for report in reports),
        "phases": _phases(requests, asked, gone),
    }


def phase_between(
    reports: Sequence[TaskReport], begin: float | None, end: float | None
) -> dict[str, Any]:
    """Describe the requests that were due from ``begin`` until ``end``; None is never."""
    first, last = (float("inf") if moment is None else moment for moment in (begin, end))
    ended = [each for report in reports for each in _ended(report)]
    return _phase([each for each in ended if first <= each.due_seconds < last], last)


def _closings(peers: Sequence[PeerRecord]) -> list[float]:
    """Return when the server closed a peer."""
    gone = [peer.gone_seconds for peer in peers if peer.end == PeerEnd.CLOSED]
    return [moment for moment in gone if moment is not None]


def _since(asked: float | None, moment: float | None) -> float | None:
    return None if asked is None or moment is None else moment - asked


def _ended(report: TaskReport) -> list[_Ended]:
    columns = [report.rows[name].to_pylist() for name in _COLUMNS]
    return [_Ended(*row) for row in zip(*columns, strict=True) if row[2] is not None]


def _first_answer(requests: Sequence[_Ended], asked: float | None) -> dict[str, float | None]:
    """Describe the first answer to a request that was due since the peers had asked.

    Neither figure counts from when they asked: until the next listing is due nobody waits.
    """
    since = [each for each in requests if asked is not None and each.due_seconds >= asked]
    answers = [each for each in since if each.outcome == Outcome.ANSWERED]
    first = min(answers, key=lambda each: each.finished_seconds, default=None)
    if first is None:
        return {"first_answer_latency_seconds": None, "nobody_answered_seconds": None}
    first_due = min(each.due_seconds for each in since)
    return {
        "first_answer_latency_seconds": first.finished_seconds - first.due_seconds,
        "nobody_answered_seconds": first.finished_seconds - first_due,
    }


def _phases(
    requests: Sequence[_Ended], asked: float | None, gone: float | None
) -> dict[str, dict[str, Any]]:
    begin = float("inf") if asked is None else asked
    end = float("inf") if gone is None else gone
    before = [each for each in requests if each.due_seconds < begin]
    stuck = [each for each in requests if begin <= each.due_seconds < end]
    after = [each for each in requests if each.due_seconds >= max(begin, end)]
    return {
        "before": _phase(before, begin),
        "stuck": _phase(stuck, end),
        "after": _phase(after, float("inf")),
    }


def _phase(requests: Sequence[_Ended], end: float) -> dict[str, Any]:
    """Count the requests due in a phase, and those answered before the phase was over."""
    answers = [each for each in requests if each.outcome == Outcome.ANSWERED]
    refused = [each for each in requests if each.outcome == Outcome.REFUSED]
    return {
        "requests": len(requests),
        "answered": len(answers),
        "answered_in_phase": sum(each.finished_seconds < end for each in answers),
        "refused": len(refused),
        "clients_refused": len({each.client for each in refused}),
        "failed": len(requests) - len(answers) - len(refused),
        "latency_seconds": _latency_of_all(requests),
    }


def _latency_of_all(requests: Sequence[_Ended]) -> dict[str, float | None] | None:
    """Return percentiles of all requests due; one that lies among the unanswered is None.

    Those of the answers alone would praise a server that refuses whoever has to wait.
    """
    never = float("inf")
    found = percentiles(
        each.finished_seconds - each.due_seconds if each.outcome == Outcome.ANSWERED else never
        for each in requests
    )
    if found is None:
        return None
    return {name: None if value == never else value for name, value in found.items()}
