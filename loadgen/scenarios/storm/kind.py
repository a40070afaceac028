"""The registry's row of the scenario ``storm``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.scenarios.kind import ReportWords, ScenarioKind
from loadgen.scenarios.storm.scenario import StormScenario
from loadgen.units import format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXAMPLE = """\
  loadgen run --service-url pulsar://127.0.0.1:6650 --corpus out/topics

  loadgen run --service-url pulsar://127.0.0.1:6650 \\
    --namespace public/default --clients 200 --read-rate 0 --executor process

  loadgen run --service-url pulsar://127.0.0.1:6650 --corpus out/topics \\
    --spread-seconds 30 --broker-admin-url http://127.0.0.1:8080 --json"""


def _describe(scenario: Mapping[str, Any]) -> str:
    spread = float(scenario.get("spread_seconds") or 0)
    when = f"within {format_seconds(spread)}" if spread else "at the same moment"
    rate = float(scenario.get("read_rate_bytes_per_second") or 0)
    pace = f"and reads the answer at {rate / 1000:,.0f} kB/s" if rate else "and reads at full speed"
    return (
        f"{plural(scenario['clients'], 'client')}: {when} each asks for all topics of its "
        f"namespace{_namespaces(scenario)} {pace}."
    )


def _namespaces(scenario: Mapping[str, Any]) -> str:
    namespaces = scenario.get("namespaces")
    if not isinstance(namespaces, list) or not namespaces:
        return ""
    sizes = {item.get("topics") for item in namespaces if isinstance(item, dict)}
    size = sizes.pop() if len(sizes) == 1 else None
    each = f", {size:,} topics each" if isinstance(size, int) else ""
    return f" ({plural(len(namespaces), 'namespace')}{each})"


STORM = ScenarioKind(
    model=StormScenario,
    task="loadgen.scenarios.storm.task:StormTask",
    help="all clients list topics at the same moment.",
    example=_EXAMPLE,
    words=ReportWords(
        title="Topic-list storm",
        name="a topic-list storm",
        at_zero="all clients ask",
        got="got the topic list",
        describe=_describe,
        more="more --clients, or slower readers (--read-rate)",
    ),
)
