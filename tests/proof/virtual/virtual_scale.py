"""Storms of 50,000 sockets of each family, and a storm of 100,000 clients, in virtual time.

The figure is this process's CPU time, so that other work on the machine does not count.
"""

import time
from collections import Counter
from typing import Any, get_args

from loadgen.behaviours.discover import Family
from loadgen.documents.model import Document
from loadgen.places.virtual import VirtualRun, run_in_virtual_time
from tests.proof.result import ProofOptions, ProofResult

ONCE, CROWD = "once", "crowd"
CROWD_GOAL_SECONDS = 120.0
"""CPU time bound of the crowd's storm: a figure beside the measured time."""
SOCKETS, QUICK_SHARE = 50_000, 250
_KEYS = {
    "maxTopicListInFlightHeapMemSizeMB": "50",
    "maxTopicListInFlightDirectMemSizeMB": "50",
    "floodgateSocketSendBufferBytes": "65536",
}
_SERVERS = {"broker": _KEYS, "proxy": {**_KEYS, "maxConcurrentInboundConnections": "200000"}}
_READER = {"rate": "1MB/s", "buffer": "64KiB"}


def prove(options: ProofOptions) -> ProofResult:
    """Play the storms in sequence."""
    result = ProofResult()
    for name in (ONCE, *get_args(Family), CROWD):
        options.note(name)
        play(name, result, quick=options.quick)
    return result


def storm(name: str, share: int = 1) -> Document:
    """Return a storm, reduced by a share."""
    phases: dict[str, str] = {"measure": "5m"}
    topics = {"namespaces": 20, "per_namespace": 5000}
    group: dict[str, Any] = {"name": name, "do": "discover", "library": name, "read": _READER}
    # Clients of java-poll, and of tunnelling families, have two sockets each, the second opened on
    # reattaching.
    group["count"] = SOCKETS if name in ("cpp", "go") else SOCKETS // 2
    if name == "java-poll":
        phases["hold"] = "15s"
    elif name == ONCE:
        group = {"name": name, "do": "list", "count": SOCKETS, "read": _READER}
    elif name == CROWD:
        group = {"name": name, "do": "discover", "library": "go", "count": 100_000, "period": "30s"}
        phases, topics["per_namespace"] = {"measure": "30s", "hold": "42s"}, 1000
    group["count"] //= share
    return Document.model_validate(
        {"name": name, "topics": topics, "servers": _SERVERS, "clients": [group], "phases": phases}
    )


def play(name: str, result: ProofResult, *, quick: bool) -> None:
    """Play a storm, a small one if ``quick``."""
    document = storm(name, QUICK_SHARE if quick else 1)
    begun = time.process_time()
    run = run_in_virtual_time(document)
    cpu_seconds = time.process_time() - begun
    _judge(document, run, cpu_seconds, result)
    if name == CROWD:
        result.figures[name]["goal_cpu_seconds"] = CROWD_GOAL_SECONDS


def _judge(document: Document, run: VirtualRun, cpu_seconds: float, result: ProofResult) -> None:
    name, (group,) = document.name, document.clients
    requests, events = run.rows.requests, run.rows.events
    wrong = sum(row.outcome == "wrong" for row in requests)
    back = [row.value or 0.0 for row in events if row.what == "back"]
    outcomes = Counter(row.what for row in events)
    last = max(back, default=0.0)
    held = [each for each in run.samples.processes if run.samples.holds_memory(each)]
    result.figures[name] = {
        "clients": group.count,
        "back": len(back),
        "refused": outcomes["refused"],
        "wrong": wrong,
        "requests": len(requests),
        "cpu_seconds": round(cpu_seconds, 1),
        "requests_per_cpu_second": round(len(requests) / cpu_seconds),
        "last_back_seconds": round(last, 1),
    }
    result.check(
        f"{name}: all are back or refused by name",
        bool(back) and len(back) + outcomes["refused"] == group.count,
        f"{name}: of {group.count} clients {len(back)} are back, the last after {last:.1f} s, and "
        f"{outcomes['refused']} refused; {len(requests)} requests in {cpu_seconds:.1f} s of CPU",
    )
    result.check(
        f"{name}: nothing is wrong, nothing is held",
        wrong == 0 and not held,
        f"{name}: {wrong} wrong of {len(requests)} answers; lists are held by {held or 'nobody'}",
    )
