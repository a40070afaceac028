"""What the parts of a run of ``client-memory`` find, and a directory of such a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loadgen.clients.records import ROWS, TaskFacts, TaskReport
from loadgen.scenarios.client_memory.scenario import ClientMemoryScenario
from loadgen.scenarios.client_memory.summary import client_memory_document, write_series
from tests.support.runs.run_directories import STORMS, edit_json, write_run

if TYPE_CHECKING:
    from pathlib import Path

MEGABYTE = 1 << 20
SCENARIO = ClientMemoryScenario(backlog_topics=5, consumers_per_topic=2, producers=2)
LIMIT = SCENARIO.memory_limit_bytes
SENT = SCENARIO.producers * SCENARIO.producer_messages


def sample(at_seconds: float, **changes: float) -> dict[str, float]:
    """Return a sample of ten consumers."""
    return {
        "at_seconds": at_seconds,
        "usage_bytes": 6 * MEGABYTE,
        "promised_bytes": 0,
        "resident_bytes": 45 * MEGABYTE,
        "queue_least": 1,
        "queue_median": 2.0,
        "queue_most": 4,
        "queue_sum": 20,
        "queued": 10,
        "granted_consumers": 3,
        "growths": 10,
        "shrinks": 0,
        "consumers_waiting": 7,
        "sends_waiting": 0,
        "messages": 100,
        **changes,
    }


def found(policy: str, **changes: Any) -> dict[str, Any]:
    """Return what a part found that began a second after T0."""
    producing = not policy
    return {
        "policy": policy,
        "begun_seconds": 1.0,
        "baseline_bytes": 39 * MEGABYTE,
        "high_water_bytes": LIMIT if producing else 6 * MEGABYTE,
        "resident_peak_bytes": 46 * MEGABYTE,
        "usage_after_closing_bytes": 0,
        "messages": SENT if producing else 100,
        "stopped_seconds": [0.5, 1.5] if producing else [],
        "first_messages": [] if producing else [[0.0, 0.1], [0.1, 0.4]],
        "samples": [sample(0.0, usage_bytes=0), sample(1.0), sample(2.0)],
        **changes,
    }


def report(*parts: dict[str, Any]) -> TaskReport:
    """Return the task's report; without parts, of all as they should be."""
    facts = TaskFacts(0, 1, 0.0, 0.0, 0.0)
    return TaskReport(
        pa.Table.from_pylist([], ROWS), facts, parts or (found("bytes"), found("pulsar"), found(""))
    )


def write_client_memory_run(directory: Path, *parts: dict[str, Any]) -> Path:
    """Write a run's directory and return it."""
    write_run(directory, STORMS[2], clients=10)
    reports = [report(*parts)]
    write_series(directory, reports)
    edit_json(
        directory / "summary.json",
        scenario="client-memory",
        label="Mine",
        **client_memory_document(SCENARIO, reports),
    )
    edit_json(directory / "run.json", scenario=SCENARIO.model_dump(mode="json"))
    return directory
