"""The registry's row of the scenario ``produce-consume``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from loadgen.scenarios.kind import ReportWords, ScenarioKind
from loadgen.scenarios.produce_consume.scenario import ProduceConsumeScenario
from loadgen.units import format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.clients.records import TaskReport


def _describe(scenario: Mapping[str, Any]) -> str:
    return (
        f"{plural(scenario['clients'], 'producer')} with a topic each publish "
        f"{scenario['messages_per_second']:g} messages a second of {scenario['message_bytes']:,} "
        f"bytes, for {format_seconds(scenario['produce_seconds'])}; each topic has "
        f"{plural(scenario['subscriptions'], 'subscription')} ({scenario['subscription_type']}) of "
        f"{plural(scenario['consumers'], 'consumer')}."
    )


def messages_document(
    scenario: ProduceConsumeScenario, reports: Sequence[TaskReport]
) -> dict[str, dict[str, float]]:
    """Add up the counts of all subscriptions; rates are of the time in which messages were due."""
    counts: Counter[str] = Counter()
    for report in reports:
        for detail in report.details:
            counts.update(detail)
        operations = zip(
            report.rows["operation"].to_pylist(), report.rows["outcome"].to_pylist(), strict=True
        )
        counts["receipts"] += sum(each == ("publish", "answered") for each in operations)
    seconds = scenario.produce_seconds
    return {
        "produce_consume": {
            **counts,
            "receipts_per_second": counts["receipts"] / seconds,
            "deliveries_per_second": counts["delivered"] / seconds,
        }
    }


PRODUCE_CONSUME = ScenarioKind(
    model=ProduceConsumeScenario,
    task="loadgen.scenarios.produce_consume.task:ProduceConsumeTask",
    help="messages on a schedule, and consumers that check order, loss and latency.",
    example="""\
  loadgen run --scenario produce-consume \\
    --service-url pulsar://127.0.0.1:6650 \\
    --namespace public/default --clients 10 --messages-per-second 50 \\
    --executor process""",
    words=ReportWords(
        title="Messages through topics with consumers",
        name="messages through topics with consumers",
        at_zero="the first message is due",
        got="got a receipt or were delivered",
        describe=_describe,
        requests="Messages sent and delivered",
    ),
    summarize=messages_document,
)
