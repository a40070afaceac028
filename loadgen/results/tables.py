"""The tables of a run: what its tasks write as Parquet, and everything else is made from.

``requests/`` has a row for each request, ``events/`` whatever else clients and servers know,
``samples/`` the servers' figures over time. A folder has a file for each task.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.engine.rows import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadgen.engine.rows import RequestRow, Rows

_TEXT = pa.dictionary(pa.int32(), pa.string())
_WALL = pa.timestamp("us", "UTC")
REQUESTS = pa.schema(
    [
        pa.field("run", _TEXT, nullable=False),
        pa.field("task", pa.int32(), nullable=False),
        pa.field("client", pa.int32(), nullable=False),
        pa.field("group", _TEXT, nullable=False),
        pa.field("family", _TEXT, nullable=False),  # Empty where clients follow no library.
        pa.field("operation", _TEXT, nullable=False),
        pa.field("namespace", _TEXT, nullable=False),
        pa.field("item", pa.string(), nullable=False),  # A message's number, a topic.
        pa.field("at", _WALL, nullable=False),  # When it was due, on the wall clock.
        pa.field("due", pa.float64(), nullable=False),  # Seconds since the agreed start, as below.
        pa.field("sent", pa.float64()),  # Null for what was never sent.
        pa.field("first_byte", pa.float64()),
        pa.field("done", pa.float64(), nullable=False),
        # From due and from sent until done; infinite for what was not answered.
        pa.field("response_seconds", pa.float64(), nullable=False),
        pa.field("service_seconds", pa.float64(), nullable=False),
        pa.field("outcome", _TEXT, nullable=False),
        pa.field("reason", _TEXT, nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("topics", pa.int32()),  # Null for an answer that is no listing.
        pa.field("topics_hash", _TEXT, nullable=False),  # As computed from the names.
    ]
)
EVENTS = pa.schema(
    [
        pa.field("run", _TEXT, nullable=False),
        pa.field("task", pa.int32(), nullable=False),
        pa.field("client", pa.int32(), nullable=False),
        pa.field("group", _TEXT, nullable=False),
        pa.field("family", _TEXT, nullable=False),
        pa.field("namespace", _TEXT, nullable=False),
        pa.field("at", _WALL, nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),  # Since the agreed start.
        pa.field("what", _TEXT, nullable=False),
        pa.field("value", pa.float64()),
        pa.field("text", pa.string(), nullable=False),
    ]
)
SAMPLES = pa.schema(
    [
        pa.field("run", _TEXT, nullable=False),
        pa.field("process", _TEXT, nullable=False),
        pa.field("at", _WALL, nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("metric", _TEXT, nullable=False),  # As the server calls it, labels included.
        pa.field("figure", _TEXT),  # As loadgen calls it; null where it has no name for it.
        pa.field("value", pa.float64(), nullable=False),
    ]
)
TABLES = {"requests": REQUESTS, "events": EVENTS, "samples": SAMPLES}


def write_rows(directory: str, run: str, task: int, t0_epoch_seconds: float, rows: Rows) -> None:
    """Verify a task's answers and write its rows; requests that have no end are left out.

    Args:
        directory: The run's.
        run: Its name.
        task: The task's number.
        t0_epoch_seconds: The agreed start on the wall clock.
        rows: The task's.
    """
    requests = [row for row in rows.requests if row.outcome is not None]
    for row in requests:
        verify(row)
    told: dict[str, list[Any]] = {
        "at": [_wall(t0_epoch_seconds, row.due) for row in requests],
        "outcome": [str(row.outcome) for row in requests],
        "response_seconds": [_took(row, row.due) for row in requests],
        "service_seconds": [_took(row, row.sent) for row in requests],
    }
    write_table(directory, "requests", task, _columns("requests", run, task, requests) | told)
    seconds = [row.at for row in rows.events]
    told = {"at": [_wall(t0_epoch_seconds, each) for each in seconds], "seconds": seconds}
    write_table(directory, "events", task, _columns("events", run, task, rows.events) | told)


def _columns(table: str, run: str, task: int, rows: Sequence[object]) -> dict[str, list[Any]]:
    """Return the columns that rows have as they are, and those that are the same for all."""
    same = {"run": run, "task": task}
    names = TABLES[table].names
    return {name: [getattr(row, name, same.get(name)) for row in rows] for name in names}


def write_table(directory: str, table: str, part: int, columns: dict[str, list[Any]]) -> None:
    """Write one part of a table."""
    schema = TABLES[table]
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    folder = Path(directory) / table
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=schema),
        folder / f"part-{part:05}.parquet",
        compression="zstd",
    )


def _wall(t0_epoch_seconds: float, seconds: float) -> int:
    return round((t0_epoch_seconds + seconds) * 1e6)


def _took(row: RequestRow, begun: float | None) -> float:
    if row.outcome is not Outcome.ANSWERED or begun is None or row.done is None:
        return math.inf
    return row.done - begun


def verify(row: RequestRow) -> None:
    """Judge a listing, and give its bytes back."""
    answer, row.answer = row.answer, None
    if answer is None:
        return
    verdict = answer.verdict()
    row.topics, row.topics_hash = verdict.topics, verdict.hash
    if verdict.problem is not None:
        row.outcome = Outcome.WRONG
        row.reason = f"the answer for {row.namespace} {verdict.problem}"


def parts_of(directory: Path, table: str) -> Iterable[Path]:
    """Return the files of a table."""
    return sorted((directory / table).glob("*.parquet"))
