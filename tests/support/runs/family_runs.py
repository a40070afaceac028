"""A run directory that looks like a restart storm of families, made without any server."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.clients.records import CLIENT_ROWS, ROWS
from tests.support.runs.run_directories import HEAP_REFUSAL, STORMS, edit_json, write_run

if TYPE_CHECKING:
    from pathlib import Path

FAMILIES = ("once", "polite", "java-watch", "java-poll", "cpp", "go")
_SECONDS = {
    "once": 0.0,
    "polite": 6.0,
    "java-watch": 9.0,
    "java-poll": 14.0,
    "cpp": 20.0,
    "go": 3.0,
}
"""How long a family waits before it tries again."""


def write_family_run(directory: Path, clients: int = 20, seed: int = 1) -> Path:
    """Write a run of ``clients`` clients of each family; those of ``once`` never try again."""
    write_run(directory, STORMS[1], clients=len(FAMILIES) * clients, seed=seed)
    rng = random.Random(seed)
    requests: list[dict[str, Any]] = []
    back = [
        _client(number, FAMILIES[number % len(FAMILIES)], requests, rng)
        for number in range(len(FAMILIES) * clients)
    ]
    schema = ROWS.remove(ROWS.get_field_index("topics_hash"))
    pq.write_table(pa.Table.from_pylist(requests, schema), directory / "requests.parquet")
    pq.write_table(pa.Table.from_pylist(back, CLIENT_ROWS), directory / "clients.parquet")
    _use_processor(directory / "server-metrics.parquet")
    answered = sum(row["outcome"] == "answered" for row in requests)
    refused = len(requests) - answered
    description = json.loads((directory / "run.json").read_text())
    edit_json(directory / "run.json", scenario={**description["scenario"], "kind": "storm"})
    edit_json(
        directory / "summary.json",
        label="Restart storm of families",
        answered=answered,
        refused={HEAP_REFUSAL: refused},
        thresholds=[
            {
                "threshold": "clients.back.rate >= 99%",
                "passed": False,
                "value": 0.9,
                "found": "90 %",
            },
            {"threshold": "list.wrong.count == 0", "passed": True, "value": 0.0, "found": "0"},
        ],
    )
    return directory


def _client(
    number: int, family: str, requests: list[dict[str, Any]], rng: random.Random
) -> dict[str, Any]:
    """Ask until a request is answered, the later the more likely; add its rows."""
    start = rng.uniform(0, 2)
    at, listings = start, 0
    namespace = f"tenant-{number % 3}/ns-{number % 7}"
    same = {"client": number, "task": number % 2, "namespace": namespace, "family": family}
    while True:
        end = at + rng.uniform(0.2, 3)
        listings += 1
        answered = rng.random() < 0.25 + end / 30
        requests.append(_row(same, at, end, answered=answered, rng=rng))
        if answered or family == "once":
            return {
                **same,
                "group": family,
                "intended_start_seconds": start,
                "connected_seconds": -0.5,
                "back_seconds": end if answered else None,
                "outcome": "answered" if answered else "refused",
                "reason": "" if answered else HEAP_REFUSAL,
                "listings": listings,
                "reconnects": 0,
                "restarts": 0,
                "connections": 1,
            }
        at = end + _SECONDS[family]


def _row(
    same: dict[str, Any], at: float, end: float, *, answered: bool, rng: random.Random
) -> dict[str, Any]:
    return {
        **same,
        "operation": "list",
        "group": same["family"],
        "intended_start_seconds": at,
        "started_seconds": at + 0.001,
        "first_byte_seconds": end - 0.1 if answered else None,
        "finished_seconds": end,
        "outcome": "answered" if answered else "refused",
        "reason": "" if answered else HEAP_REFUSAL,
        "topics": 10_000 if answered else 0,
        "bytes": rng.choice([1_000, 80_000, 1_060_000]) if answered else 70,
    }


def _use_processor(path: Path) -> None:
    """Add processor time, descriptors and connections to what servers told."""
    rows = pq.read_table(path).to_pylist()
    moments = sorted({row["at_seconds"] for row in rows})
    for process, load in (("broker", 0.6), ("proxy", 0.9)):
        total = 12.0
        for before, at in pairwise(moments):
            total += (at - before) * load * (1 if 0 < at < 20 else 0.1)
            open_now = 60 + 200 * (0 < at < 25)
            connections = f"pulsar_{'proxy_' if process == 'proxy' else ''}active_connections"
            rows += [
                {"at_seconds": at, "process": process, "metric": metric, "value": value}
                for metric, value in (
                    ("process_cpu_seconds_total", total),
                    ("process_open_fds", open_now),
                    ("process_max_fds", 512.0),
                    (connections, open_now - 60.0),
                )
            ]
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(path)), path)
    summary = path.with_name("summary.json")
    processes = json.loads(summary.read_text())["processes"]
    use = {"cpu_seconds": 14.2, "descriptors_peak": 260, "descriptors_limit": 512}
    edit_json(summary, processes={name: {**each, **use} for name, each in processes.items()})
