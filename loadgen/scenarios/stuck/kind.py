"""The registry's row of the scenario ``stuck``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError
from loadgen.scenarios.kind import ScenarioKind
from loadgen.scenarios.stuck.peer_record import PEERS_NAME, write_peers
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.scenarios.stuck.summary import stuck_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.clients.records import TaskReport


def _summarize(scenario: StuckScenario, reports: Sequence[TaskReport]) -> dict[str, Any]:
    return {"stuck": stuck_document(scenario, reports)}


def _require_peers(summary: Mapping[str, Any], directory: Path) -> None:
    stuck = summary["stuck"]
    if stuck["unreachable"]:
        raise LoadgenError(
            f"{stuck['unreachable']} of {stuck['peers']} stuck peers could not connect; "
            f"{directory / PEERS_NAME} says why"
        )


STUCK = ScenarioKind(
    model=StuckScenario,
    task="loadgen.scenarios.stuck.task:StuckTask",
    help="healthy clients list on a schedule, while peers ask for many listings and do not read.",
    example="""\
  loadgen run --scenario stuck --service-url pulsar://127.0.0.1:6650
  --namespace public/default --stuck-pipelined 64 --executor process""",
    files=(PEERS_NAME,),
    write=write_peers,
    summarize=_summarize,
    check=_require_peers,
)
