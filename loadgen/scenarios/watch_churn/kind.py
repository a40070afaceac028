"""The registry's row of the scenario ``watch-churn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.scenarios.kind import ReportWords, ScenarioKind
from loadgen.scenarios.watch_churn.scenario import WatchChurnScenario
from loadgen.units import format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.clients.records import TaskReport


def _describe(scenario: Mapping[str, Any]) -> str:
    watched = plural(len(scenario["namespaces"]), "namespace")
    return (
        f"{plural(scenario['clients'], 'client')} watch {watched}; in each "
        f"{scenario['changes_per_second']:g} topics a second are created or "
        f"deleted by admin REST, for {format_seconds(scenario['churn_seconds'])}."
    )


def watch_document(
    scenario: WatchChurnScenario, reports: Sequence[TaskReport]
) -> dict[str, dict[str, int]]:
    """Add up the counts of all namespaces."""
    del scenario
    details = [detail for report in reports for detail in report.details]
    return {"watch_churn": {name: sum(each[name] for each in details) for name in details[0]}}


WATCH_CHURN = ScenarioKind(
    model=WatchChurnScenario,
    task="loadgen.scenarios.watch_churn.task:WatchChurnTask",
    help="clients watch namespaces while topics are created and deleted by admin REST.",
    example="""\
  loadgen run --scenario watch-churn --service-url pulsar://127.0.0.1:6650 \\
    --namespace public/default --admin-url http://127.0.0.1:8080 \\
    --executor process""",
    words=ReportWords(
        title="Watches while topics come and go",
        name="watches while topics come and go",
        at_zero="the first topic is created",
        got="were made and told",
        describe=_describe,
        requests="Changes and updates",
    ),
    summarize=watch_document,
)
