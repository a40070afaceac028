"""The registry's row of the scenario ``lookups``."""

from __future__ import annotations

from loadgen.scenarios.kind import ScenarioKind
from loadgen.scenarios.lookups.scenario import LookupsScenario

LOOKUPS = ScenarioKind(
    model=LookupsScenario,
    task="loadgen.scenarios.lookups.task:LookupsTask",
    help="clients look topics up on a schedule.",
    example="""\
  loadgen run --scenario lookups --service-url pulsar://127.0.0.1:6651
  --namespace public/default --lookups-per-second 50 --executor process""",
)
