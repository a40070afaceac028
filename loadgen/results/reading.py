"""Reads a run directory back: run.json, summary.json and the two Parquet files.

A report can be made again from the run directory alone, on another machine.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.clients.records import CLIENT_ROWS
from loadgen.errors import UsageError
from loadgen.results.summary import Requests, Run, RunSummary, Series, parse_summary
from loadgen.places.vocabulary import figure_of

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION = 1

# The same figure has one name here, whichever process it comes from.
_METRIC_PREFIX = re.compile(r"^pulsar_(broker|proxy)_topic_list_")
# Columns of requests that runs before them do not have.
_COLUMNS_OF_TODAY = {"operation": "list", "group": "", "family": ""}
_CLUSTER_LABEL = re.compile(r'cluster="[^"]*",?')


class RunDirectoryError(UsageError):
    """A run directory is missing, incomplete or not what ``loadgen run`` writes."""


def load_run(directory: Path) -> Run:
    """Read one run directory.

    Raises:
        RunDirectoryError: The directory or one of its files is missing or malformed.
    """
    if not directory.is_dir():
        raise RunDirectoryError(
            f"{directory} is not a run directory: name one that `loadgen run --out` has written"
        )
    return Run(
        directory=directory,
        description=_read_json(directory / "run.json"),
        summary=load_summary(directory),
        requests=_read_requests(directory / "requests.parquet"),
        metrics=_read_metrics(directory / "server-metrics.parquet"),
        rows=load_request_rows(directory),
        clients=load_client_rows(directory),
        document=load_document(directory),
    )


def load_summary(directory: Path) -> RunSummary:
    """Read the figures of one run directory alone.

    Raises:
        RunDirectoryError: ``summary.json`` is missing or malformed.
    """
    path = directory / "summary.json"
    document = load_document(directory)
    try:
        return parse_summary(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunDirectoryError(
            f"{path} lacks or garbles {error}: run again with this version of loadgen"
        ) from error


def load_document(directory: Path) -> dict[str, Any]:
    """Read ``summary.json`` of one run directory as it is.

    Raises:
        RunDirectoryError: It is missing or malformed.
    """
    return _read_json(directory / "summary.json")


def load_description(directory: Path) -> dict[str, Any]:
    """Read ``run.json`` of one run directory as it is.

    Raises:
        RunDirectoryError: It is missing or malformed.
    """
    return _read_json(directory / "run.json")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _missing(path) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunDirectoryError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(document, dict):
        raise RunDirectoryError(f"{path} is not a JSON object")
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise RunDirectoryError(
            f"{path} has schema_version {version}; this loadgen reads {SCHEMA_VERSION}"
        )
    return document


def _missing(path: Path) -> RunDirectoryError:
    return RunDirectoryError(
        f"{path.parent} has no {path.name}: the run did not finish, or this is not a run"
    )


def _read_columns(path: Path, columns: list[str]) -> list[list[Any]]:
    """Read the named columns of a Parquet file, as lists."""
    try:
        table = pq.read_table(path, columns=columns)
        return [table.column(name).to_pylist() for name in columns]
    except FileNotFoundError:
        raise _missing(path) from None
    except (OSError, KeyError, pa.ArrowException) as error:
        raise RunDirectoryError(f"{path} cannot be read: {error}") from error


def _read_requests(path: Path) -> Requests:
    starts, ends, outcomes = _read_columns(
        path, ["intended_start_seconds", "finished_seconds", "outcome"]
    )
    rows = [row for row in zip(starts, ends, outcomes, strict=True) if row[1] is not None]
    return Requests([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])


def load_request_rows(directory: Path) -> pa.Table:
    """Read requests.parquet with all columns of today; those that an older run lacks are filled.

    Raises:
        RunDirectoryError: The file is missing or malformed.
    """
    path = directory / "requests.parquet"
    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise _missing(path) from None
    except (OSError, pa.ArrowException) as error:
        raise RunDirectoryError(f"{path} cannot be read: {error}") from error
    for name, value in _COLUMNS_OF_TODAY.items():
        if name not in table.column_names:
            table = table.append_column(name, pa.array([value] * table.num_rows, pa.string()))
    return table


def load_client_rows(directory: Path) -> pa.Table:
    """Read clients.parquet; no rows if the run's clients have none.

    Raises:
        RunDirectoryError: The file is malformed.
    """
    path = directory / "clients.parquet"
    try:
        return pq.read_table(path) if path.exists() else CLIENT_ROWS.empty_table()
    except (OSError, pa.ArrowException) as error:
        raise RunDirectoryError(f"{path} cannot be read: {error}") from error


def _read_metrics(path: Path) -> dict[tuple[str, str], Series]:
    """Read all scraped series by (process, figure or plain name), each in order of time."""
    if not path.exists():  # a cluster whose /metrics nobody could read
        return {}
    rows = _read_columns(path, ["at_seconds", "process", "metric", "value"])
    points: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for at_seconds, process, metric, value in zip(*rows, strict=True):
        name = figure_of(metric) or plain_metric_name(metric)
        points[process, name].append((at_seconds, value))
    return {key: _to_series(values) for key, values in points.items()}


def _to_series(points: list[tuple[float, float]]) -> Series:
    points.sort(key=lambda point: point[0])
    return Series([at for at, _ in points], [value for _, value in points])


def plain_metric_name(metric: str) -> str:
    """Return a metric's name without process prefix and cluster label.

    ``pulsar_broker_topic_list_heap_wait_time_ms_sum{cluster="x"}`` and its twin on the proxy are
    both ``heap_wait_time_ms_sum``.
    """
    name = _CLUSTER_LABEL.sub("", _METRIC_PREFIX.sub("", metric))
    return name.replace(",}", "}").removesuffix("{}")
