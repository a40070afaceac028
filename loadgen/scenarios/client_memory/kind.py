"""The registry's row of the scenario ``client-memory``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.scenarios.client_memory.scenario import ClientMemoryScenario
from loadgen.scenarios.client_memory.summary import (
    SERIES_NAME,
    client_memory_document,
    require_held,
    write_series,
)
from loadgen.scenarios.kind import ReportWords, ScenarioKind
from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping


def _describe(scenario: Mapping[str, Any]) -> str:
    each = scenario["consumers_per_topic"]
    consuming = (
        f"One client with a memory limit of {format_bytes(scenario['memory_limit_bytes'])}; "
        f"{plural(each * scenario['backlog_topics'], 'Shared consumer')} of "
        f"{plural(scenario['backlog_topics'], 'topic')} take a backlog of "
        f"{format_bytes(scenario['backlog_bytes'])} in messages of "
        f"{format_bytes(scenario['message_bytes'])}, for "
        f"{format_seconds(scenario['drain_seconds'])}, each working "
        f"{format_seconds(scenario['work_seconds'])} on a message; then the same with upstream's "
        "queues."
    )
    if not scenario["producers"]:
        return consuming
    return (
        f"{consuming} Then {plural(scenario['producers'], 'producer')} send "
        f"{plural(scenario['producer_messages'], 'message')} of "
        f"{format_bytes(scenario['producer_message_bytes'])} each to a server that reads nothing "
        f"for {format_seconds(scenario['stopped_seconds'])}."
    )


CLIENT_MEMORY = ScenarioKind(
    model=ClientMemoryScenario,
    task="loadgen.scenarios.client_memory.task:ClientMemoryTask",
    help="one client with a memory limit consumes a backlog, and sends to a stopped server.",
    example="  loadgen run --scenario client-memory --executor process",
    words=ReportWords(
        title="A client's memory limit",
        name="a client with a memory limit",
        at_zero="the first consumer subscribes",
        got="got a message",
        requests="Consumers' first messages",
        describe=_describe,
    ),
    report="loadgen.report.client_memory.section:CLIENT_MEMORY_ADDITION",
    files=(SERIES_NAME,),
    write=write_series,
    summarize=client_memory_document,
    check=require_held,
)
