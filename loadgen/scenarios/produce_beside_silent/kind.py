"""The registry's row of the scenario ``produce-beside-silent``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.scenarios.kind import ReportWords, ScenarioKind
from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
from loadgen.scenarios.produce_beside_silent.summary import (
    checks_document,
    require_expected,
    silent_document,
)
from loadgen.stuck_peers.summary import PEERS_NAME, write_peers
from loadgen.units import format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    help="producers publish on a schedule, while silent clients read no receipts or messages.",
    example="""\
  loadgen run --scenario produce-beside-silent \\
    --service-url pulsar://127.0.0.1:6650 \\
    --namespace public/default --silent-producers 2 --executor process""",
    words=ReportWords(
        title="Publishing beside clients that do not read",
        name="publishing beside clients that do not read",
        at_zero="the first message is due",
        got="got a receipt",
        describe=_describe,
    ),
    report="loadgen.report.stuck.section:STUCK_ADDITION",
    files=(PEERS_NAME,),
    write=write_peers,
    summarize=silent_document,
    judge=checks_document,
    check=require_expected,
)
