"""The registry's row of the scenario ``discovery``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.scenarios.discovery.scenario import DiscoveryScenario
from loadgen.scenarios.discovery.summary import groups_document
from loadgen.scenarios.kind import ReportWords, ScenarioKind
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

_ASKING = {
    "once": "ask once and never again",
    "polite": "ask as this project's client does",
    "java-watch": "ask as the Java client does, and watch",
    "java-poll": "ask as the Java client does where there is no watch",
    "cpp": "ask as the C++, Python and Node.js clients do",
    "go": "ask as the Go client does",
}


def _describe(scenario: Mapping[str, Any]) -> str:
    groups = "; ".join(
        f"{plural(group['clients'], 'client')} ({group['name']}) {_ASKING[group['family']]}"
        for group in scenario["groups"]
    )
    return f"{groups}. Topics are in {plural(len(scenario['namespaces']), 'namespace')}."


DISCOVERY = ScenarioKind(
    model=DiscoveryScenario,
    task="loadgen.scenarios.discovery.task:DiscoveryTask",
    help="groups of clients discover topics and retry as real clients do.",
    example="",
    words=ReportWords(
        title="Clients that find their topics",
        name="clients that find their topics",
        at_zero="the first clients ask",
        got="got an answer",
        describe=_describe,
        requests="Requests",
        more="more clients in the groups, or slower readers",
    ),
    summarize=groups_document,
)
