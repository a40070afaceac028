"""The Parquet tables that the tasks of a run write; all figures are computed from them.

``requests/`` has a row for each request, ``events/`` has all other reports of clients and servers,
and ``samples/`` has the servers' metrics over time. Each folder has a file for each task, or a few
merged files.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.engine.rows import Outcome
from loadgen.errors import LoadgenError, reason_of
from loadgen.stored import placed, written_whole
from proto.parquet_versions import version_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.engine.rows import RequestRow, Rows

RUN_VERSION = 2
"""The version of ``run.json`` and of the tables; an added column keeps the version."""
_TEXT = pa.dictionary(pa.int32(), pa.string())
_NUMBER = pa.float64()
_TYPES = {
    **dict.fromkeys(("run", "group", "family", "operation", "namespace", "process"), _TEXT),
    **dict.fromkeys(("outcome", "reason", "topics_hash", "what", "metric", "figure"), _TEXT),
    **dict.fromkeys(("item", "text"), pa.string()),
    **dict.fromkeys(("task", "client", "topics"), pa.int32()),
    "bytes": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
}
"""The types of columns, the same in each table; all other columns are numbers."""


def _schema(columns: str) -> pa.Schema:
    """Return an Arrow schema from column names; a question mark after a name allows null."""
    named = [(each.rstrip("?"), each.endswith("?")) for each in columns.split()]
    fields = [pa.field(name, _TYPES.get(name, _NUMBER), null) for name, null in named]
    return pa.schema(fields, version_metadata(RUN_VERSION))


# docs/reports.md explains the columns. Moments are seconds since the agreed start, except ``at``,
# on the wall clock; a request without an answer took an infinite time.
REQUESTS = _schema(
    "run task client group family operation namespace item at due sent? first_byte? done "
    "response_seconds service_seconds outcome reason bytes topics? topics_hash"
)
EVENTS = _schema("run task client group family namespace at seconds what value? text")
SAMPLES = _schema("run process at seconds metric figure? value")
TABLES = {"requests": REQUESTS, "events": EVENTS, "samples": SAMPLES}


def write_rows(directory: str, run: str, task: int, t0_epoch_seconds: float, rows: Rows) -> None:
    """Verify the answers of a task, and write its rows except requests that never ended.

    Args:
        directory: The directory of the run.
        run: The name of the run.
        task: The number of the task.
        t0_epoch_seconds: The agreed start on the wall clock, in seconds of the epoch.
        rows: The rows of the task.
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
    """Return rows as a table's columns, including columns with the same value in each row."""
    same = {"run": run, "task": task}
    names = TABLES[table].names
    return {name: [getattr(row, name, same.get(name)) for row in rows] for name in names}


def write_table(directory: str, table: str, part: int, columns: dict[str, list[Any]]) -> None:
    """Write one Parquet file of a table.

    Raises:
        LoadgenError: The file cannot be written.
    """
    path = part_of(placed(Path(directory)), table, part)
    rows = pa.table(columns, schema=TABLES[table])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as file:
            pq.write_table(rows, file, compression="zstd")
    except OSError as error:
        said = f"the run cannot be written to {directory}: {reason_of(error)}"
        raise LoadgenError(said) from error


def _wall(t0_epoch_seconds: float, seconds: float) -> int:
    return round((t0_epoch_seconds + seconds) * 1e6)


def _took(row: RequestRow, begun: float | None) -> float:
    if row.outcome is not Outcome.ANSWERED or begun is None or row.done is None:
        return math.inf
    return row.done - begun


def verify(row: RequestRow) -> None:
    """Verify the answer to a list request, record the result in its row, and free the answer."""
    answer, row.answer = row.answer, None
    if answer is None:
        return
    verdict = answer.verdict()
    row.topics, row.topics_hash = verdict.topics, verdict.hash
    if verdict.problem is not None:
        row.outcome = Outcome.WRONG
        row.reason = f"the answer for {row.namespace} {verdict.problem}"


def part_of(directory: Path, table: str, part: int) -> Path:
    """Return the path of the file that one task writes for a table."""
    return directory / table / f"part-{part:05}.parquet"


def parts_of(directory: Path, table: str) -> list[Path]:
    """Return the paths of all files that a table has in a run's directory."""
    return sorted((directory / table).glob("*.parquet"))
