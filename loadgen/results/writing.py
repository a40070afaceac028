"""Writes a run's results: its JSON documents, and its requests, clients and servers as Parquet.

Percentiles are exact (nearest rank).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadgen.clients.answers import AnswerVerdict, disagreement
from loadgen.clients.records import ROWS, Outcome, TaskReport
from loadgen.results.generator import generator_document
from loadgen.results.latency import percentiles
from loadgen.places.vocabulary import figure_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from loadgen.servers.series import ProcessSeries, WatchedServers

SCHEMA_VERSION = 1
_METRIC_COLUMNS = pa.schema(
    [
        pa.field("at_seconds", pa.float64(), nullable=False),
        pa.field("process", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        # Its name of loadgen/servers/vocabulary.py; null where it has none.
        pa.field("figure", pa.string()),
        pa.field("value", pa.float64(), nullable=False),
    ]
)


def summarized(reports: Sequence[TaskReport], planned: int | None = None) -> dict[str, Any]:
    """Return the summary's fields on requests and on the generator, of all tasks together.

    Args:
        reports: One of each task.
        planned: Requests that the schedule holds, where that is known before the run.
    """
    rows = pa.concat_tables([report.rows for report in reports])
    answered = rows.filter(pc.equal(rows["outcome"], Outcome.ANSWERED.value))
    refused = rows.filter(pc.equal(rows["outcome"], Outcome.REFUSED.value))
    outcomes = Counter(rows["outcome"].to_pylist())
    finished = answered["finished_seconds"]
    facts = [report.facts for report in reports]
    return {
        **{kind.value: outcomes[kind.value] for kind in Outcome if kind is not Outcome.REFUSED},
        "refused": dict(Counter(refused["reason"].to_pylist()).most_common()),
        "latency_seconds": _latency(finished, answered["intended_start_seconds"]),
        "service_latency_seconds": _latency(finished, answered["started_seconds"]),
        "bytes": pc.sum(rows["bytes"]).as_py() or 0,
        "topics_per_answer": _extremes(answered["topics"]),
        "bytes_per_answer": _extremes(answered["bytes"]),
        "duration_seconds": max(0.0, pc.max(rows["finished_seconds"]).as_py() or 0.0),
        **generator_document(rows, facts, planned),
        "interrupted": any(each.interrupted for each in facts),
    }


def _latency(finished: pa.ChunkedArray, begun: pa.ChunkedArray) -> dict[str, float] | None:
    return percentiles(pc.subtract(finished, begun).to_pylist())


def _extremes(values: pa.ChunkedArray) -> dict[str, int] | None:
    found: dict[str, Any] = pc.min_max(values).as_py()
    return None if found["min"] is None else found


def agreed_reports(reports: Sequence[TaskReport]) -> list[TaskReport]:
    """Return the reports in order of task; answers that differ between tasks become wrong.

    Within a task all answers of a namespace were compared when they were verified.
    """
    # The first right answer of each namespace; groups may ask for different parts of it.
    references: dict[tuple[str, str], AnswerVerdict] = {}
    ordered = sorted(reports, key=lambda report: report.facts.task)
    return [replace(each, rows=_agreed_rows(each.rows, references)) for each in ordered]


def _agreed_rows(rows: pa.Table, references: dict[tuple[str, str], AnswerVerdict]) -> pa.Table:
    changed = rows.to_pylist()
    for row in changed:
        if row["outcome"] != Outcome.ANSWERED.value or row["topics"] is None:
            continue
        verdict = AnswerVerdict(row["topics"], row["topics_hash"])
        reference = references.setdefault((row["namespace"], row["group"]), verdict)
        problem = disagreement(verdict, reference).problem
        if problem is not None:
            row["outcome"] = Outcome.WRONG.value
            row["reason"] = f"the answer for {row['namespace']} {problem}"
    return pa.Table.from_pylist(changed, schema=ROWS)


def process_document(watch: ProcessSeries) -> dict[str, Any]:
    """Describe what a server needed; what it does not tell is None, never 0.

    Units: bytes; counts of requests.
    """
    prefix = f"pulsar_{watch.target.process}_topic_list_"
    pending = "floodgate_outbound_pending_bytes"
    return {
        "heap": _accounted(watch, prefix, "heap"),
        "direct": _accounted(watch, prefix, "direct"),
        "outbound_pending_peak_bytes": _largest(watch.peak(f"{pending}_peak"), watch.peak(pending)),
        **_resident(watch),
        "heap_timeouts": _rise(watch, f"{prefix}heap_timeout_total"),
        "direct_timeouts": _rise(watch, f"{prefix}direct_timeout_total"),
        "heap_queue_peak": _largest(watch.peak(f"{prefix}heap_queue_size")),
        "direct_queue_peak": _largest(watch.peak(f"{prefix}direct_queue_size")),
        "cpu_seconds": _cpu_seconds(watch),
        "again_seconds": watch.again_seconds,
        "descriptors_peak": _largest(watch.peak("process_open_fds")),
        "descriptors_limit": _largest(watch.last("process_max_fds")),
    }


def _resident(watch: ProcessSeries) -> dict[str, int | None]:
    """Exact figures need the process id; scrapes alone miss what lies between two of them."""
    metric = "process_resident_memory_bytes"
    first, highest = watch.first(metric), watch.peak(metric)
    idle, peak = watch.resident_idle_bytes, watch.resident_peak_bytes
    if idle is None or peak is None:
        idle = peak = None
    return {
        "resident_idle_bytes": idle,
        "resident_peak_bytes": peak,
        "resident_over_idle_bytes": _over(idle, peak),
        "resident_over_first_scrape_bytes": _over(first, highest),
        "resident_highest_scrape_bytes": _largest(highest),
    }


def _accounted(watch: ProcessSeries, prefix: str, kind: str) -> dict[str, int | None] | None:
    limit = watch.last(f"{prefix}{kind}_memory_limit_bytes")
    if not limit or limit < 0:
        return None
    used = f"{prefix}{kind}_memory_used_bytes"
    # Pulsar itself tells only what is used at the moment of a scrape.
    mark = watch.peak(f'floodgate_topic_list_memory_high_water_bytes{{type="{kind}"}}')
    scraped = watch.peak(used)
    return {
        "limit_bytes": int(limit),
        "high_water_bytes": None if mark is None else _largest(mark, scraped),
        "highest_scrape_bytes": _largest(scraped),
        "final_bytes": _largest(watch.last(used)),
    }


def _largest(*values: float | None) -> int | None:
    """Return the largest of what is known, or None of nothing."""
    return max((int(value) for value in values if value is not None), default=None)


def _over(base: float | None, peak: float | None) -> int | None:
    return None if base is None or peak is None else max(0, int(peak - base))


def _cpu_seconds(watch: ProcessSeries) -> float | None:
    risen = watch.rise("process_cpu_seconds_total")
    return None if risen is None else round(risen, 3)


def _rise(watch: ProcessSeries, metric: str) -> int | None:
    risen = watch.rise(metric)
    return None if risen is None else int(risen)


def write_requests(path: Path, reports: Iterable[TaskReport]) -> None:
    """Write requests.parquet: one row for each request."""
    table = pa.concat_tables([report.rows for report in reports])
    pq.write_table(table.drop_columns(["topics_hash"]), path)


def write_clients(path: Path, reports: Iterable[TaskReport]) -> None:
    """Write clients.parquet, one row for each client, unless the scenario's clients have none."""
    table = pa.concat_tables([report.clients for report in reports])
    if table.num_rows:
        pq.write_table(table, path)


def write_server_metrics(path: Path, watch: WatchedServers, offset_seconds: float) -> None:
    """Write server-metrics.parquet.

    Args:
        path: The file.
        watch: What was seen.
        offset_seconds: The driver's monotonic clock at T0.
    """
    points = [
        (at, process, metric, figure_of(metric), value)
        for at, process, metric, value in watch.points(lambda at: at - offset_seconds)
    ]
    columns = list(zip(*points, strict=True)) or [()] * len(_METRIC_COLUMNS)
    arrays = [
        pa.array(column, each.type) for column, each in zip(columns, _METRIC_COLUMNS, strict=True)
    ]
    pq.write_table(pa.Table.from_arrays(arrays, schema=_METRIC_COLUMNS), path)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file for people and programs."""
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
