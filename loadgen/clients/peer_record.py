"""What became of a stuck peer, as a value; its row in stuck-peers.parquet."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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
    """How a stuck peer's connection ended."""

    CLOSED = "closed by the server"
    LEFT = "left"
    UNREACHABLE = "unreachable"


@dataclass(slots=True)
class PeerRecord:
    """What became of one stuck peer; times are seconds relative to the agreed T0.

    Attributes:
        peer: Its number.
        namespace: What it asked for.
        asked_seconds: When it sent its requests; None if it never did.
        gone_seconds: When its connection was over; None if it never had one.
        end: How it ended; None while it lasts.
        reason: Why it could not connect.
        bytes: What it read after it had asked.
    """

    peer: int
    namespace: str
    asked_seconds: float | None = None
    gone_seconds: float | None = None
    end: PeerEnd | None = None
    reason: str = ""
    bytes: int = 0


def write_peers(path: Path, peers: Iterable[PeerRecord]) -> None:
    """Write stuck-peers.parquet: one row for each stuck peer."""
    rows = sorted((asdict(peer) for peer in peers), key=lambda row: int(row["peer"]))
    pq.write_table(pa.Table.from_pylist(rows, schema=PEER_ROWS), path)
