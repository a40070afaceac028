"""The registry's row of the scenario ``storm``."""

from __future__ import annotations

from loadgen.scenarios.kind import ScenarioKind
from loadgen.scenarios.storm.scenario import StormScenario

_EXAMPLE = """\
  loadgen run --service-url pulsar://127.0.0.1:6650 --corpus out/topics

  loadgen run --service-url pulsar://127.0.0.1:6650
  --namespace public/default --clients 200 --read-rate 0 --executor process

  loadgen run --service-url pulsar://127.0.0.1:6650 --corpus out/topics
  --spread-seconds 30 --broker-admin-url http://127.0.0.1:8080 --json"""

STORM = ScenarioKind(
    model=StormScenario,
    task="loadgen.scenarios.storm.task:StormTask",
    help="all ask at the same moment.",
    example=_EXAMPLE,
)
