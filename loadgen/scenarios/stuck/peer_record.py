"""The record of a stuck peer: its row in stuck-peers.parquet."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable
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
        peer: Its number.
        namespace: The namespace that it asked for.
        asked_seconds: When it sent its requests; None if it never did.
        gone_seconds: When its connection was over; None if it never had one.
        end: How it ended; None while it lasts.
        reason: Why it could not connect.
        bytes: Bytes that it read after it had asked.
    """

    peer: int
    namespace: str
    asked_seconds: float | None = None
    gone_seconds: float | None = None
    end: PeerEnd | None = None
    reason: str = ""
    bytes: int = 0


def peer_records(reports: Iterable[TaskReport]) -> list[PeerRecord]:
    """Return the stuck peers that tasks report, in order of their numbers."""
    found = [PeerRecord(**row) for report in reports for row in report.details]
    return sorted(found, key=lambda peer: peer.peer)


def write_peers(directory: Path, reports: Iterable[TaskReport]) -> None:
    """Write stuck-peers.parquet: one row for each stuck peer."""
    rows = [asdict(peer) for peer in peer_records(reports)]
    pq.write_table(pa.Table.from_pylist(rows, schema=PEER_ROWS), directory / PEERS_NAME)
