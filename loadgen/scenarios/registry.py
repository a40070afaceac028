"""The registry of scenarios: a new one is a folder beside this file, and a row here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.errors import UsageError
from loadgen.scenarios.client_memory.kind import CLIENT_MEMORY
from loadgen.scenarios.discovery.kind import DISCOVERY
from loadgen.scenarios.lookups.kind import LOOKUPS
from loadgen.scenarios.produce_beside_silent.kind import PRODUCE_BESIDE_SILENT
from loadgen.scenarios.produce_consume.kind import PRODUCE_CONSUME
from loadgen.scenarios.storm.kind import STORM
from loadgen.scenarios.stuck.kind import STUCK
from loadgen.scenarios.watch_churn.kind import WATCH_CHURN

if TYPE_CHECKING:
    from loadgen.scenario import Scenario
    from loadgen.scenarios.kind import ScenarioKind

# The first one is the default.
_ROWS = (
    STORM,
    STUCK,
    LOOKUPS,
    PRODUCE_BESIDE_SILENT,
    CLIENT_MEMORY,
    DISCOVERY,
    WATCH_CHURN,
    PRODUCE_CONSUME,
)
SCENARIOS: dict[str, ScenarioKind] = {row.name: row for row in _ROWS}


def kind_of(scenario: Scenario) -> ScenarioKind:
    """Return the row of a scenario."""
    return SCENARIOS[scenario.kind]


def kind_named(name: str) -> ScenarioKind:
    """Return the row of the scenario that a run directory names.

    Raises:
        UsageError: There is no such scenario.
    """
    if name not in SCENARIOS:
        raise UsageError(f"there is no scenario {name!r}: this loadgen has {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
