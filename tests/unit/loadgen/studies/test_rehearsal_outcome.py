"""Recovery after an event is judged by the client family's rules."""

import math
from pathlib import Path
from typing import Any

from loadgen.alerts.rules import SHIPPED_RULES
from loadgen.results.results import Results
from loadgen.studies.rehearsal import Rehearsal, rehearsed
from tests.support.runs.recorded_run import event, record_run, request
from tests.unit.loadgen.studies.test_rehearsal import question

CLIENTS = [{"name": name, "do": "discover", "count": 1} for name in ("java-watch", "cpp")]
PHASES = {"warm_up": 30.0, "measure": 1.0, "hold": 400.0, "drain": 5.0}


def java(client: int, due: float, operation: str = "watch", **said: Any) -> dict[str, Any]:
    group = {"group": "java-watch", "family": "java-watch"}
    return request(client=client, due=due, operation=operation, **group, **said)


def cpp(client: int, due: float, **said: Any) -> dict[str, Any]:
    return request(client=client, due=due, group="cpp", family="cpp", **said)


def test_watching_clients_are_back_by_their_watch_and_polling_clients_by_listing(tmp_path) -> None:
    # A restart at 30 s: clients have 90 s, polling clients 60 s more
    rehearsal = Rehearsal(question(), "restart")
    requests = [
        java(0, 1.0), java(0, 61.0, "list"), java(0, 70.0),
        java(1, 1.0), java(1, 61.0, "list"),
        java(2, 1.0), java(2, 130.0),
        cpp(3, 1.0), cpp(3, 40.0, outcome="unreachable"), cpp(3, 150.0),
        cpp(4, 60.0, outcome="refused", reason="ServiceNotReady: <address> cannot be reached"),
        cpp(4, 100.0, outcome="refused", reason="TooManyRequests: x"), cpp(4, 160.0),
    ]  # fmt: skip
    shock = event("shock", client=-1, group="", seconds=30.0, text="restart broker")
    run = record_run(
        tmp_path / "run", requests, [shock], clients=CLIENTS, document={"phases": PHASES}
    )
    with Results.open(run) as results:
        found = rehearsed(rehearsal, results, SHIPPED_RULES)
    watching, polling = found.back
    assert (watching["clients"], watching["back"], watching["last_seconds"]) == (3, 1, math.inf)
    assert round(watching["half_seconds"], 1) == 100.1
    assert (polling["clients"], polling["back"], round(polling["last_seconds"], 1)) == (2, 2, 130.1)
    assert found.missed == {"java-watch.back": "2 of 3 java-watch not back within 90.0 s"}
    assert [(row["refused"], row["asked"]) for row in found.back] == [(0, 4), (1, 3)]
    assert not found.alerts.found


def test_of_several_restarts_the_worst_recovery_is_reported(tmp_path: Path) -> None:
    # At 30, 120 and 210 s
    rehearsal = Rehearsal(question(), "rolling", 3)
    requests = [
        java(n, due) for n in range(2) for due in (1.0, 35.0, 130.0 + 90 * n, 215.0)
    ] + [cpp(3, due) for due in (1.0, 60.0, 125.0, 240.0)]  # fmt: skip
    run = record_run(tmp_path / "run", requests, clients=CLIENTS, document={"phases": PHASES})
    with Results.open(run) as results:
        watching, polling = rehearsed(rehearsal, results, SHIPPED_RULES).back
    assert (watching["back"], watching["clients"], watching["last_seconds"]) == (1, 2, math.inf)
    assert (polling["back"], round(polling["last_seconds"], 1)) == (1, 30.1)
