"""The summary tells of each group who is back, when, and at what price."""

from __future__ import annotations

import pyarrow as pa

from loadgen.clients.records import CLIENT_ROWS, ROWS, TaskFacts, TaskReport
from loadgen.scenarios.discovery.scenario import DiscoveryScenario
from loadgen.scenarios.discovery.summary import groups_document
from tests.unit.loadgen.scenarios.discovery.clients import NAMESPACE


def client(number, group, outcome, back=None, reason=""):
    return {
        "client": number, "task": 0, "group": group, "family": "cpp", "namespace": NAMESPACE.name,
        "intended_start_seconds": 1.0, "connected_seconds": -0.5, "listed_seconds": back,
        "back_seconds": back, "outcome": outcome, "reason": reason, "listings": 2, "reconnects": 1,
        "restarts": 0, "connections": 2,
    }  # fmt: skip


def request(number, group, operation, outcome):
    return {
        "client": number, "task": 0, "namespace": NAMESPACE.name, "operation": operation,
        "group": group, "family": "cpp", "intended_start_seconds": 1.0, "started_seconds": 1.0,
        "first_byte_seconds": 1.1, "finished_seconds": 1.2, "outcome": outcome, "reason": "",
        "topics": None, "bytes": 100, "topics_hash": "",
    }  # fmt: skip


def test_groups_are_told_apart_and_tasks_are_added_up():
    # Given
    groups = tuple({"name": name, "family": "cpp", "clients": 2} for name in ("a", "b"))
    scenario = DiscoveryScenario(namespaces=(NAMESPACE,), groups=groups)
    clients = [
        [client(0, "a", "back", 3.0), client(2, "b", "refused", None, "TooManyRequests: full")],
        [client(1, "a", "back", 5.0), client(3, "b", "unfinished")],
    ]
    requests = [
        [request(0, "a", "list", "answered"), request(2, "b", "list", "refused")],
        [request(1, "a", "list", "answered"), request(1, "a", "lookup", "answered")],
    ]
    reports = [
        TaskReport(
            pa.Table.from_pylist(requests[task], schema=ROWS),
            TaskFacts(task, 2, 0.0, 0.0, 0.0),
            (),
            pa.Table.from_pylist(clients[task], schema=CLIENT_ROWS),
        )
        for task in range(2)
    ]
    # When
    found = groups_document(scenario, reports)["groups"]
    # Then
    first, second = found["a"], found["b"]
    assert (first["clients"], first["back"], second["back"]) == (2, 2, 0)
    assert (first["back_seconds"]["p50"], first["back_seconds"]["max"]) == (2.0, 4.0)
    assert second["back_seconds"] is None
    assert second["refused"] == {"TooManyRequests: full": 1}
    assert second["unfinished"] == {"": 1}
    assert first["requests"] == {"list": {"answered": 2}, "lookup": {"answered": 1}}
    assert (first["bytes"], first["listings"], first["connections"]) == (300, 4, 4)
