"""The registry's row of the scenario ``lookups``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.scenarios.kind import ReportWords, ScenarioKind
from loadgen.scenarios.lookups.scenario import LookupsScenario
from loadgen.units import format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping


def _describe(scenario: Mapping[str, Any]) -> str:
    return (
        f"{plural(scenario['clients'], 'client')}, {scenario['lookups_per_second']:g} lookups each "
        f"a second, for {format_seconds(scenario['lookup_seconds'])}: each asks where the topics "
        f"of its namespace ({plural(len(scenario['namespaces']), 'namespace')}) are, one by one."
    )


LOOKUPS = ScenarioKind(
    model=LookupsScenario,
    task="loadgen.scenarios.lookups.task:LookupsTask",
    help="clients look topics up on a schedule.",
    example="""\
  loadgen run --scenario lookups --service-url pulsar://127.0.0.1:6651 \\
    --namespace public/default --lookups-per-second 50 --executor process""",
    words=ReportWords(
        title="Topic lookups",
        name="lookups",
        at_zero="the first lookup is due",
        got="got an answer",
        describe=_describe,
    ),
)
