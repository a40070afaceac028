"""Run directories and summaries of the scenario ``stuck``, made without any server.

They are written by the code that writes real ones, from rows of a small model: ten healthy
clients, one listing each a second; a peer asks at 1.05 s and is gone at 7.05 s.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.clients.records import ROWS, TaskFacts, TaskReport
from loadgen.clients.schedule import due_moments
from loadgen.results.summary import parse_summary
from loadgen.results.writing import summarized, write_requests
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.stuck_peers.summary import PeerEnd, PeerRecord, stuck_document, write_peers

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.results.summary import RunSummary

ASKED, GONE, PATIENCE = 1.05, 7.05, 3.0
REASON = "TooManyRequests: Failed due to heap memory limit exceeded"
SCENARIO = StuckScenario(
    service_url="pulsar://127.0.0.1:6650",
    namespaces=(NamespaceExpectation(name="public/default"),),
    duration_seconds=8.0,
    stuck_at_seconds=ASKED,
    stuck_seconds=GONE - ASKED,
)
LABELS = {"stuck-pulsar": "As in Pulsar", "stuck-floodgate": "Floodgate"}


def row(client: int, due: float, finished: float, outcome: str = "answered") -> dict[str, Any]:
    """Return one request as a task reports it."""
    return {
        "client": client,
        "task": 0,
        "namespace": "public/default",
        "operation": "list",
        "group": "",
        "family": "",
        "intended_start_seconds": due,
        "started_seconds": due,
        "first_byte_seconds": None,
        "finished_seconds": finished,
        "outcome": outcome,
        "reason": REASON if outcome == "refused" else "",
        "topics": 5,
        "bytes": 100,
        "topics_hash": "aa",
    }


def report(
    rows: list[dict[str, Any]], peers: tuple[PeerRecord, ...] = (), connections_lost: int = 0
) -> TaskReport:
    """Return what one task of ten clients hands back."""
    facts = TaskFacts(0, SCENARIO.clients, 0.0, 0.001, 0.0, connections_lost=connections_lost)
    details = tuple(asdict(peer) for peer in peers)
    return TaskReport(pa.Table.from_pylist(rows, schema=ROWS), facts, details)


def peer(
    number: int = 0, gone: float | None = GONE, end: PeerEnd | None = PeerEnd.LEFT
) -> PeerRecord:
    """Return a peer that asked."""
    return PeerRecord(number, "public/default", ASKED, gone, end)


def starved() -> TaskReport:
    """Return requests beside a peer that starves everybody until it leaves."""
    rows = []
    for client in range(SCENARIO.clients):
        for due in due_moments(SCENARIO, client):
            if due < ASKED or due >= GONE:
                rows.append(row(client, due, due + 0.002))
            elif due + PATIENCE < GONE:
                rows.append(row(client, due, due + PATIENCE, "refused"))
            else:
                rows.append(row(client, due, GONE + 0.005))
    return report(rows, (peer(),))


def unharmed() -> TaskReport:
    """Return requests beside the same peer where nobody else notices it."""
    rows = [
        row(client, due, due + 0.003)
        for client in range(SCENARIO.clients)
        for due in due_moments(SCENARIO, client)
    ]
    return report(rows, (peer(),))


def summary_json(name: str, found: TaskReport) -> dict[str, Any]:
    """Return a run's summary.json."""
    return {
        "schema_version": 1,
        "name": name,
        "label": LABELS.get(name, name),
        "clients": SCENARIO.clients,
        **summarized([found]),
        "processes": {},
        "stuck": stuck_document(SCENARIO.stuck_pipelined, [found]),
    }


def summary(name: str, found: TaskReport) -> RunSummary:
    """Return a run's figures."""
    return parse_summary(summary_json(name, found))


def stuck_summaries() -> dict[str, RunSummary]:
    """Return the figures of the demo's second part, as they should be."""
    return {
        "stuck-pulsar": summary("stuck-pulsar", starved()),
        "stuck-floodgate": summary("stuck-floodgate", unharmed()),
    }


def write_stuck_run(directory: Path, found: TaskReport | None = None) -> Path:
    """Write one run directory; its name decides what happened, unless a report is given."""
    directory.mkdir(parents=True, exist_ok=True)
    if found is None:
        found = unharmed() if directory.name == "stuck-floodgate" else starved()
    document = summary_json(directory.name, found)
    description = {
        "schema_version": 1,
        "name": document["name"],
        "label": document["label"],
        "scenario": SCENARIO.model_dump(mode="json"),
        "tasks": [asdict(found.facts)],
    }
    (directory / "summary.json").write_text(json.dumps(document))
    (directory / "run.json").write_text(json.dumps(description))
    write_requests(directory / "requests.parquet", [found])
    write_peers(directory, [found])
    metrics = {"at_seconds": [0.0], "process": ["broker"], "metric": ["x"], "value": [0.0]}
    pq.write_table(pa.table(metrics), directory / "server-metrics.parquet")
    return directory


def write_stuck_runs(root: Path) -> list[Path]:
    """Write the run directories of the demo's second part under ``root``."""
    return [write_stuck_run(root / name) for name in LABELS]
