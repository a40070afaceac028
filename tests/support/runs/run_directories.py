"""Run directories that look like a real storm's, made without any server.

Reports, tables and checks are tested on these: three runs of one storm (limits off, limits on in
both profiles) whose shapes follow from a small model, so that a test can change one figure.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from loadgen.results.latency import percentiles

if TYPE_CHECKING:
    from pathlib import Path

MB = 1024 * 1024
LIMIT_BYTES = 50 * MB
ANSWER_BYTES = 1_060_000
READ_SECONDS = ANSWER_BYTES / 100_000
SCRAPE_SECONDS = 0.25
HEAP_REFUSAL = "TooManyRequests: Failed due to heap memory limit exceeded"
DIRECT_REFUSAL = "TooManyRequests: Cannot acquire permits for direct memory"

UNKNOWN_OF_PULSAR = (
    "outbound_pending_peak_bytes",
    "resident_idle_bytes",
    "resident_peak_bytes",
    "resident_over_idle_bytes",
)

REQUESTS_SCHEMA = pa.schema(
    [
        ("client", pa.int32()),
        ("task", pa.int32()),
        ("namespace", pa.string()),
        ("intended_start_seconds", pa.float64()),
        ("started_seconds", pa.float64()),
        ("first_byte_seconds", pa.float64()),
        ("finished_seconds", pa.float64()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
        ("topics", pa.int32()),
        ("bytes", pa.int64()),
    ]
)
METRICS_SCHEMA = pa.schema(
    [
        ("at_seconds", pa.float64()),
        ("process", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Storm:
    """One run of the model."""

    name: str
    label: str
    limited: bool
    slots: int
    patience_seconds: float
    copies: float


STORMS = (
    Storm("off", "Limits off", False, 10**9, 1e9, 1.3),
    Storm("pulsar", "Limits on, profile pulsar", True, 48, 25.0, 1.2),
    Storm("floodgate", "Limits on, profile floodgate", True, 470, 1e9, 0.12),
)


RESTARTS = [
    {"restart": "broker", "at_seconds": 3.0, "ready_seconds": 4.25, "again_seconds": 6.5},
    {"restart": "proxy", "at_seconds": 4.0, "ready_seconds": 4.5, "again_seconds": None},
    {"restart": "broker", "at_seconds": 9.5, "ready_seconds": 10.5, "again_seconds": 2.0},
]
"""Restarts of servers as a summary has them; two are so close that labels would collide."""


def write_three_runs(root: Path, clients: int = 1000, seed: int = 1) -> list[Path]:
    """Write the run directories ``off``, ``pulsar`` and ``floodgate`` under ``root``."""
    return [write_run(root / storm.name, storm, clients, seed) for storm in STORMS]


def write_run(directory: Path, storm: Storm, clients: int = 1000, seed: int = 1) -> Path:
    """Write one run directory of the model and return it."""
    directory.mkdir(parents=True)
    requests = _requests(storm, clients, random.Random(seed))
    metrics = _metrics(storm, requests)
    pq.write_table(pa.Table.from_pylist(requests, REQUESTS_SCHEMA), directory / "requests.parquet")
    pq.write_table(
        pa.Table.from_pylist(metrics, METRICS_SCHEMA), directory / "server-metrics.parquet"
    )
    _write_json(directory / "run.json", _description(storm, clients))
    _write_json(directory / "summary.json", _summary(storm, requests, metrics))
    return directory


def edit_json(path: Path, **changes: Any) -> None:
    """Change top-level fields of a JSON file; a value of None removes the field."""
    document = json.loads(path.read_text())
    document.update(changes)
    _write_json(path, {key: value for key, value in document.items() if value is not None})


def forget_own_figures(directory: Path) -> None:
    """Leave of a run directory what a Pulsar whose process id is not known would have told."""
    processes = json.loads((directory / "summary.json").read_text())["processes"]
    for process in processes.values():
        process |= dict.fromkeys(UNKNOWN_OF_PULSAR)
        for kind in ("heap", "direct"):
            if process[kind] is not None:
                process[kind]["high_water_bytes"] = None
    edit_json(directory / "summary.json", processes=processes)
    path = directory / "server-metrics.parquet"
    table = pq.read_table(path)
    pq.write_table(table.filter(pc.invert(pc.starts_with(table["metric"], "floodgate_"))), path)


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2))


def _requests(storm: Storm, clients: int, rng: random.Random) -> list[dict[str, Any]]:
    """Make requests: each waits for a slot, gives up after the patience, or reads slowly."""
    free_at = [0.0] * min(storm.slots, clients)
    rows = []
    for client in range(clients):
        slot = min(range(len(free_at)), key=free_at.__getitem__)
        begin = free_at[slot] + rng.uniform(0.05, 0.9)
        refused = begin > storm.patience_seconds
        end = storm.patience_seconds + rng.uniform(0, 0.4) if refused else begin + READ_SECONDS
        end += 0 if refused else rng.expovariate(4)
        if not refused:
            free_at[slot] = end
        reason = rng.choice([HEAP_REFUSAL, DIRECT_REFUSAL, DIRECT_REFUSAL]) if refused else ""
        rows.append(_request(client, begin, end, reason))
    return rows


def _request(client: int, begin: float, end: float, reason: str) -> dict[str, Any]:
    return {
        "client": client,
        "task": client % 2,
        "namespace": f"tenant-{client % 10}/ns-{client % 100}",
        "intended_start_seconds": 0.0,
        "started_seconds": 0.004,
        "first_byte_seconds": None if reason else begin,
        "finished_seconds": end,
        "outcome": "refused" if reason else "answered",
        "reason": reason,
        "topics": 0 if reason else 10_000,
        "bytes": 70 if reason else ANSWER_BYTES,
    }


def _metrics(storm: Storm, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    end = max(row["finished_seconds"] for row in requests) + 1.5
    rows: list[dict[str, Any]] = []
    for step in range(-4, round(end / SCRAPE_SECONDS)):
        at = step * SCRAPE_SECONDS
        for process, share in (("broker", 0.45), ("proxy", 1.0)):
            values = _values_at(storm, requests, at, share)
            rows += [
                {"at_seconds": at, "process": process, "metric": metric, "value": value}
                for metric, value in _named(process, values).items()
            ]
    return rows


def _values_at(
    storm: Storm, requests: list[dict[str, Any]], at: float, share: float
) -> dict[str, float]:
    """Bytes in flight, waiting requests and resident memory at one moment."""
    waiting, pending = 0, 0.0
    for row in requests:
        if at < 0 or row["finished_seconds"] <= at:
            continue
        begin = row["first_byte_seconds"]
        if begin is None or begin > at:
            waiting += 1
        else:
            unread = 1 - (at - begin) / (row["finished_seconds"] - begin)
            pending += max(0.0, unread * ANSWER_BYTES - 200_000)
    pending *= share
    accounted = min(LIMIT_BYTES, pending * storm.copies) if storm.limited else 0.0
    resident = (90 + 25 * share) * MB + pending * storm.copies * 1.1
    return {
        "heap": accounted * 0.9,
        "direct": accounted,
        "queue": waiting if storm.limited else 0,
        "pending": min(pending, LIMIT_BYTES * 0.97) if storm.limited else pending,
        "resident": resident,
    }


def _named(process: str, values: dict[str, float]) -> dict[str, float]:
    prefix = f"pulsar_{process}_topic_list"
    return {
        f"{prefix}_heap_memory_used_bytes": values["heap"],
        f"{prefix}_direct_memory_used_bytes": values["direct"],
        f"{prefix}_heap_queue_size": values["queue"] * 0.3,
        f"{prefix}_direct_queue_size": values["queue"] * 0.7,
        "floodgate_outbound_pending_bytes": values["pending"],
        "process_resident_memory_bytes": values["resident"],
    }


def _summary(
    storm: Storm, requests: list[dict[str, Any]], metrics: list[dict[str, Any]]
) -> dict[str, Any]:
    latencies = [r["finished_seconds"] for r in requests if r["outcome"] == "answered"]
    refused: dict[str, int] = {}
    for row in requests:
        if row["reason"]:
            refused[row["reason"]] = refused.get(row["reason"], 0) + 1
    latency_seconds = percentiles(latencies)
    return {
        "schema_version": 1,
        "name": storm.name,
        "label": storm.label,
        "scenario": "storm",
        "server_version": None,
        "servers": {},
        "clients": len(requests),
        "answered": len(latencies),
        "refused": refused,
        "wrong": 0,
        "timeout": 0,
        "disconnected": 0,
        "unreachable": 0,
        "latency_seconds": latency_seconds,
        "service_latency_seconds": latency_seconds,
        "bytes": sum(row["bytes"] for row in requests),
        "topics_per_answer": {"min": 10_000, "max": 10_000},
        "bytes_per_answer": {"min": ANSWER_BYTES, "max": ANSWER_BYTES},
        "duration_seconds": max(row["finished_seconds"] for row in requests),
        "start_error_seconds_max": 0.004,
        "client_start_error_seconds_max": 0.02,
        "generator_limited": False,
        "interrupted": False,
        "processes": {name: _process(storm, metrics, name) for name in ("broker", "proxy")},
    }


def _process(storm: Storm, metrics: list[dict[str, Any]], process: str) -> dict[str, Any]:
    def values(suffix: str) -> list[float]:
        return [
            row["value"]
            for row in metrics
            if row["process"] == process and row["metric"].endswith(suffix)
        ]

    def accounted(kind: str) -> dict[str, int] | None:
        if not storm.limited:
            return None
        peak = int(max(values(f"{kind}_memory_used_bytes")))
        return {
            "limit_bytes": LIMIT_BYTES,
            "high_water_bytes": peak,
            "highest_scrape_bytes": peak,
            "final_bytes": 0,
        }

    resident = values("resident_memory_bytes")
    return {
        "heap": accounted("heap"),
        "direct": accounted("direct"),
        "outbound_pending_peak_bytes": int(max(values("outbound_pending_bytes"))),
        "resident_idle_bytes": int(resident[0]),
        "resident_peak_bytes": int(max(resident)),
        "resident_over_idle_bytes": int(max(resident) - resident[0]),
        "resident_over_first_scrape_bytes": int(max(resident) - resident[0]),
        "heap_timeouts": 12 if storm.name == "pulsar" else 0,
        "direct_timeouts": 320 if storm.name == "pulsar" else 0,
        "heap_queue_peak": int(max(values("heap_queue_size"))),
        "direct_queue_peak": int(max(values("direct_queue_size"))),
    }


def _description(storm: Storm, clients: int) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "name": storm.name,
        "label": storm.label,
        "started_at": "2026-11-20T09:00:00Z",
        "service_url": "pulsar://127.0.0.1:6650",
        "executor": "spark",
        "scenario": {
            "clients": clients,
            "read_rate_bytes_per_second": 100_000,
            "receive_buffer_bytes": 65_536,
            "seed": 1,
        },
        "environment": {
            "python": "3.11.7",
            "spark": "4.3.0",
            "cores": 2,
            "memory_bytes": 8 * 2**30,
        },
        "tasks": [{"task": 0, "clients": clients, "start_error_seconds": 0.004}],
    }
