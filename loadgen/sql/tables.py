"""The tables that Spark SQL sees of run directories: requests, clients, server_metrics, runs.

Every row has the name of its run. What runs of older versions do not have is null.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from loadgen.errors import UsageError
from loadgen.results.reading import RunDirectoryError, load_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_FILES = {
    "requests": (
        "requests.parquet",
        "run string, client int, task int, namespace string, operation string, `group` string, "
        "family string, intended_start_seconds double, started_seconds double, "
        "first_byte_seconds double, finished_seconds double, outcome string, reason string, "
        "topics int, bytes bigint",
        {
            "tenant": "substring_index(namespace, '/', 1)",
            "response_seconds": "finished_seconds - intended_start_seconds",
            "service_seconds": "finished_seconds - started_seconds",
        },
    ),
    "clients": (
        "clients.parquet",
        "run string, client int, task int, `group` string, family string, namespace string, "
        "intended_start_seconds double, connected_seconds double, listed_seconds double, "
        "back_seconds double, outcome string, reason string, listings int, reconnects int",
        {
            "tenant": "substring_index(namespace, '/', 1)",
            "back_after_seconds": "back_seconds - intended_start_seconds",
        },
    ),
    "server_metrics": (
        "server-metrics.parquet",
        "run string, at_seconds double, process string, metric string, figure string, value double",
        {},
    ),
}
"""Of each table: its file, the columns it has in any case, and those that follow from them."""
_RUNS = (
    "run string, label string, directory string, scenario string, started_at string, "
    "executor string, config_hash string, clients bigint, answered bigint, refused bigint, "
    "wrong bigint, timeout bigint, disconnected bigint, unreachable bigint, bytes bigint, "
    "duration_seconds double, p50 double, p90 double, p99 double, p999 double, max double, "
    "summary string"
)
TABLES = (*_FILES, "runs")


def register_tables(session: SparkSession, directories: Sequence[Path]) -> None:
    """Make the tables of some run directories views of a session.

    Raises:
        UsageError: One of them is no run.
    """
    names = run_names(directories)
    rows = [run_row(names[directory], directory) for directory in directories]
    frame = session.createDataFrame(rows, _RUNS)
    frame.createOrReplaceTempView("runs")
    for table in _FILES:
        _table(session, table, names).createOrReplaceTempView(table)


def _table(session: SparkSession, table: str, names: Mapping[Path, str]) -> DataFrame:
    from pyspark.sql import functions

    file, columns, derived = _FILES[table]
    frame = session.createDataFrame([], columns)
    for directory, name in names.items():
        if (directory / file).is_file():
            rows = session.read.parquet(_literal((directory / file).resolve()))
            rows = rows.withColumn("run", functions.lit(name))
            frame = frame.unionByName(rows, allowMissingColumns=True)
    return frame.withColumns({name: functions.expr(text) for name, text in derived.items()})


def _literal(path: Path) -> str:
    """Return a path in which Spark finds no wild cards."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))


def run_names(directories: Sequence[Path]) -> dict[Path, str]:
    """Return a name for each run: that of its directory, with the one above where two are alike.

    Raises:
        UsageError: A directory is named twice.
    """
    resolved = [directory.resolve() for directory in directories]
    for depth in (1, 2, 3):
        names = ["/".join(path.parts[-depth:]) for path in resolved]
        if len(set(names)) == len(names):
            return dict(zip(directories, names, strict=True))
    raise UsageError(f"{directories[0]} and others are the same runs: name each once")


def run_row(name: str, directory: Path) -> tuple[Any, ...]:
    """Return the row of one run, of its documents.

    Raises:
        UsageError: It is no run.
    """
    if not directory.is_dir():
        raise RunDirectoryError(
            f"{directory} is not a run directory: name one that `loadgen run --out` has written"
        )
    summary = load_document(directory)
    run_json = directory / "run.json"
    run = json.loads(run_json.read_text(encoding="utf-8")) if run_json.is_file() else {}
    latency = summary.get("latency_seconds") or {}
    refused = summary.get("refused") or {}
    counts = ("wrong", "timeout", "disconnected", "unreachable", "bytes")
    return (
        name,
        summary.get("label"),
        str(directory),
        summary.get("scenario"),
        run.get("started_at"),
        run.get("executor"),
        run.get("config_hash"),
        summary.get("clients"),
        summary.get("answered"),
        sum(refused.values()),
        *(summary.get(count) for count in counts),
        _number(summary.get("duration_seconds")),
        *(_number(latency.get(key)) for key in ("p50", "p90", "p99", "p999", "max")),
        json.dumps(summary),
    )


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
