"""A run directory from a few rows; unset fields are as in any answered list."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadgen.results.tables import RUN_VERSION, TABLES, write_table

GROUP: dict[str, Any] = {"name": "steady", "do": "list", "count": 1}
TASK: dict[str, Any] = {
    "task": 0, "clients": 1, "moments": 0, "lag_p99_seconds": 0.0, "cpu_seconds": 0.0,
    "measured_seconds": 0.0,
}  # fmt: skip


def request(**said: Any) -> dict[str, Any]:
    """A row of requests, done 0.1 s after its due time by default."""
    row = {
        "run": "r", "task": 0, "client": 0, "group": "steady", "family": "", "operation": "list",
        "namespace": "t/n", "item": "", "at": 0, "due": 0.0, "reason": "", "bytes": 10,
        "outcome": "answered", "topics": 3, "topics_hash": "h", **said,
    }  # fmt: skip
    took = math.inf if row["outcome"] != "answered" else 0.1
    row = {"sent": row["due"], "done": row["due"] + 0.1, "response_seconds": took, **row}
    return {"first_byte": row["done"], "service_seconds": row["response_seconds"], **row}


def event(what: str, **said: Any) -> dict[str, Any]:
    return {
        "run": "r", "task": 0, "client": 0, "group": "steady", "family": "", "namespace": "t/n",
        "at": 0, "seconds": 0.0, "what": what, "value": None, "text": "", **said,
    }  # fmt: skip


def sample(figure: str, seconds: float, value: float, process: str = "broker") -> dict[str, Any]:
    return {
        "run": "r", "process": process, "at": 0, "seconds": seconds, "metric": figure,
        "figure": figure, "value": value,
    }  # fmt: skip


def record_run(
    directory: Path,
    requests: Sequence[dict[str, Any]] = (),
    events: Sequence[dict[str, Any]] = (),
    samples: Sequence[dict[str, Any]] = (),
    clients: Sequence[dict[str, Any]] = (GROUP,),
    document: dict[str, Any] | None = None,
    **said: Any,
) -> Path:
    """Write a run directory and return the path."""
    tables = {"requests": requests, "events": events, "samples": samples}
    directory.mkdir(exist_ok=True)
    for name, rows in tables.items():
        for part, _ in enumerate(said.get("tasks", [TASK])):
            own = rows if part == 0 else ()
            columns = {key: [row.get(key) for row in own] for key in TABLES[name].names}
            write_table(str(directory), name, part, columns)
    run = {
        "schema_version": RUN_VERSION, "run": "r", "name": "scenario", "tasks": [TASK],
        "document": {"clients": list(clients), **(document or {})}, **said,
    }  # fmt: skip
    (directory / "run.json").write_text(json.dumps(run))
    return directory
