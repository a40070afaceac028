"""The registry of scenarios: a new one is a folder beside this file, and a row here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.scenarios.lookups.kind import LOOKUPS
from loadgen.scenarios.storm.kind import STORM
from loadgen.scenarios.stuck.kind import STUCK

if TYPE_CHECKING:
    from loadgen.scenario import Scenario
    from loadgen.scenarios.kind import ScenarioKind

# The first one is the default.
_ROWS = (
    STORM,
    STUCK,
    LOOKUPS,
)
SCENARIOS: dict[str, ScenarioKind] = {row.name: row for row in _ROWS}


def kind_of(scenario: Scenario) -> ScenarioKind:
    """Return the row of a scenario."""
    return SCENARIOS[scenario.kind]
