"""Sums up a run of ``client-memory``: what each part took, and whether the limit held."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.errors import ExitCode, LoadgenError
from loadgen.results.checks import CheckResult
from loadgen.scenarios.client_memory.scenario import POLICIES, PRODUCING
from loadgen.units import format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.clients.records import TaskReport
    from loadgen.scenarios.client_memory.scenario import ClientMemoryScenario

SERIES_NAME = "client-memory.parquet"
PROCESS_BYTES = 40 << 20
"""Bytes that the process may take beside the limit: the interpreter, and what it imports."""
CONSUMER_BYTES = 30_000
"""And for each consumer."""
_MESSAGE_EXTRA_BYTES = 1_024
"""A message counts with its properties and the like."""
_MOST = (
    "queue_most",
    "queue_sum",
    "granted_consumers",
    "growths",
    "shrinks",
    "consumers_waiting",
    "sends_waiting",
)
_AT_END = ("queue_least", "queue_median", "queue_most")


def client_memory_document(
    scenario: ClientMemoryScenario, reports: Sequence[TaskReport]
) -> dict[str, Any]:
    """Describe each part, and judge those that have this project's queues."""
    parts = {_name(found): _part(found) for report in reports for found in report.details}
    return {
        "client_memory": {
            "limit_bytes": scenario.memory_limit_bytes,
            "resident_limit_bytes": resident_limit(scenario),
            "consumers": scenario.consumers,
            "messages_sent": scenario.producers * scenario.producer_messages,
            "parts": parts,
            "checks": [asdict(check) for check in judged(scenario, parts)],
        }
    }


def _name(found: Mapping[str, Any]) -> str:
    return found["policy"] or PRODUCING


def _part(found: Mapping[str, Any]) -> dict[str, Any]:
    samples = found["samples"]
    waits = [got - wanted for wanted, got in found["first_messages"] if got is not None]
    return {
        "seconds": samples[-1]["at_seconds"],
        "messages": found["messages"],
        "high_water_bytes": found["high_water_bytes"],
        "usage_after_closing_bytes": found["usage_after_closing_bytes"],
        "resident_peak_bytes": found["resident_peak_bytes"],
        "resident_baseline_bytes": found["baseline_bytes"],
        **{f"{name}_peak": max(sample[name] for sample in samples) for name in _MOST},
        **{f"{name}_at_end": samples[-1][name] for name in _AT_END},
        "first_message_slowest_seconds": max(waits, default=None),
        "without_message": len(found["first_messages"]) - len(waits),
    }


def resident_limit(scenario: ClientMemoryScenario) -> int:
    """Return what the whole client process may take while it consumes."""
    return scenario.memory_limit_bytes + PROCESS_BYTES + scenario.consumers * CONSUMER_BYTES


def judged(
    scenario: ClientMemoryScenario, parts: Mapping[str, Mapping[str, Any]]
) -> Iterator[CheckResult]:
    """Judge the parts that were played; upstream's queues are there to compare with."""
    limit = scenario.memory_limit_bytes
    ours, producing = parts.get(POLICIES[0]), parts.get(PRODUCING)
    if ours is not None:
        promised = ours["granted_consumers_peak"] * scenario.message_bytes
        yield _at_most(
            "counted while consuming",
            "The client counted",
            ours["high_water_bytes"],
            limit + promised,
            f"the limit of {format_bytes(limit)}, and an entry for each of "
            f"{plural(ours['granted_consumers_peak'], 'consumer')} with an outstanding grant",
        )
        yield _at_most(
            "resident while consuming",
            "Its process took",
            ours["resident_peak_bytes"],
            resident_limit(scenario),
            f"the limit, {format_bytes(PROCESS_BYTES)}, and {CONSUMER_BYTES // 1_000} kB for each "
            f"of {plural(scenario.consumers, 'consumer')}",
        )
        if scenario.messages_per_topic >= scenario.consumers_per_topic:
            none = ours["without_message"]
            all_of_them = plural(scenario.consumers, "consumer")
            yield CheckResult(
                "first messages",
                not none,
                f"{none:,} of {all_of_them} got no message: give them more --drain-seconds."
                if none
                else f"Each of {all_of_them} got a message.",
            )
    if producing is not None:
        one = scenario.producer_message_bytes + _MESSAGE_EXTRA_BYTES
        yield _at_most(
            "counted while sending",
            "Producers counted",
            producing["high_water_bytes"],
            limit + one,
            "the limit and one message",
        )
        wanted = scenario.producers * scenario.producer_messages
        yield CheckResult(
            "delivered",
            producing["messages"] == wanted,
            f"{producing['messages']:,} of {plural(wanted, 'message')} were delivered when the "
            "server read again.",
        )
    held = {name: part["usage_after_closing_bytes"] for name, part in parts.items()}
    left = [f"{format_bytes(size)} ({name})" for name, size in held.items() if size]
    yield CheckResult(
        "given back",
        not left,
        f"Once closed the client counted {', '.join(left) or 'nothing'}.",
    )


def _at_most(name: str, what: str, size: int, limit: int, meaning: str) -> CheckResult:
    figures = f"{what} at most {format_bytes(size)}; allowed are {format_bytes(limit)}: {meaning}."
    return CheckResult(name, size <= limit, figures)


def write_series(directory: Path, reports: Sequence[TaskReport]) -> None:
    """Write the samples of all parts, with times since T0."""
    rows = [row for report in reports for found in report.details for row in _rows(found)]
    pq.write_table(pa.Table.from_pylist(rows), directory / SERIES_NAME)


def _rows(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    stopped, resumed = found["stopped_seconds"] or (math.inf, math.inf)
    for sample in found["samples"]:
        at = sample["at_seconds"]
        since_t0 = {"at_seconds": found["begun_seconds"] + at, "stopped": stopped <= at < resumed}
        yield {"part": _name(found), **sample, **since_t0}


def require_held(summary: Mapping[str, Any], directory: Path) -> None:
    """Refuse a run in which the limit did not hold.

    Raises:
        LoadgenError: A check failed.
    """
    del directory
    failed = [check for check in summary["client_memory"]["checks"] if not check["passed"]]
    if failed:
        raise LoadgenError(failed[0]["sentence"], ExitCode.THRESHOLDS)
