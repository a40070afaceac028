"""The registry's row of the scenario ``produce-beside-silent``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError
from loadgen.scenarios.kind import ReportWords, ScenarioKind
from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
from loadgen.scenarios.produce_beside_silent.summary import silent_document, write_silent
from loadgen.scenarios.stuck.summary import PEERS_NAME
from loadgen.units import format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def _require_silent(summary: Mapping[str, Any], directory: Path) -> None:
    figures = summary["stuck"]
    if figures["unreachable"]:
        raise LoadgenError(
            f"{figures['unreachable']} of {figures['peers']} silent clients got no producer or "
            f"consumer (see {PEERS_NAME} in {directory}): the run shows less than it says"
        )


def _describe(scenario: Mapping[str, Any]) -> str:
    healthy = (
        f"{plural(scenario['clients'], 'producer')} with a topic each, a message every "
        f"{format_seconds(scenario['interval_seconds'])}, for "
        f"{format_seconds(scenario['duration_seconds'])}."
    )
    producers, consumers = scenario["silent_producers"], scenario["silent_consumers"]
    if not producers + consumers:
        return f"{healthy} There are no silent clients."
    return (
        f"{healthy} From {format_seconds(scenario['silent_at_seconds'])} on "
        f"{plural(producers, 'silent producer')} and {plural(consumers, 'silent consumer')} read "
        "nothing."
    )


PRODUCE_BESIDE_SILENT = ScenarioKind(
    model=SilentScenario,
    task="loadgen.scenarios.produce_beside_silent.task:SilentTask",
    help="producers publish on a schedule, while other clients read no receipts and no messages.",
    example="""\
  loadgen run --scenario produce-beside-silent
  --service-url pulsar://127.0.0.1:6650
  --namespace public/default --silent-producers 2 --executor process""",
    words=ReportWords(
        title="Publishing beside clients that do not read",
        name="publishing beside clients that do not read",
        at_zero="the first message is due",
        got="got a receipt",
        describe=_describe,
    ),
    files=(PEERS_NAME,),
    write=write_silent,
    summarize=silent_document,
    check=_require_silent,
)
