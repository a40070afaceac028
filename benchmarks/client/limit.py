"""The limit of a client's memory, and what is really taken, by both policies of receiver queues.

A thousand Shared consumers on a hundred topics have a backlog of messages of 100 KiB, more than
the limit of 64 MiB holds; ten producers have messages of 1 MiB for a broker that stops reading.
The samples of each round are among the results.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.client.limit_program import (
    CONSUMERS_A_TOPIC,
    LARGE_BYTES,
    LIMIT_BYTES,
    TOPICS,
)
from benchmarks.client.rates import SETTINGS
from benchmarks.processes import run_json
from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.servers.processes import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MEGABYTE = 1 << 20
BY_BYTES, UPSTREAM = "bytes", "pulsar"
PRODUCING = "10 producers, broker stopped"
CONSUMING = {BY_BYTES: "1,000 consumers", UPSTREAM: "1,000 consumers, upstream's policy"}
GOAL_RESIDENT = LIMIT_BYTES + 40 * MEGABYTE + TOPICS * CONSUMERS_A_TOPIC * 30_000
GOAL_PRODUCED = LIMIT_BYTES + LARGE_BYTES + 1_024
"""The limit and one message, with its properties and the like."""
Round = dict[str, dict[str, Any]]


def run(options: BenchOptions) -> BenchResult:
    """Measure the rounds.

    Raises:
        BenchError: A round could not be measured.
        ServerStartError: A broker did not start.
    """
    return conclude([_measured(options, number) for number in range(options.rounds)])


def _measured(options: BenchOptions, number: int) -> Round:
    found: Round = {}
    for policy, title in CONSUMING.items():
        options.note(f"round {number + 1}: {title}")
        found[title] = _program(["fill", policy], ["consume", policy])
    options.note(f"round {number + 1}: {PRODUCING}")
    found[PRODUCING] = _program(["produce", BY_BYTES])
    return found


def _program(*tasks: list[str]) -> dict[str, Any]:
    """Return what the last task found."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder:
        launch = ServerLaunch("broker", SETTINGS, Path(folder) / "broker.log")
        with running_server(launch) as server:
            for words in tasks:
                program = "benchmarks.client.limit_program"
                found = run_json(program, server.service_url, f"{server.pid}", *words)
    return found


def conclude(rounds: Sequence[Round]) -> BenchResult:
    """Make the figures of all rounds."""
    remarks = [f"The limit is {LIMIT_BYTES / MEGABYTE:g} MiB."]
    return BenchResult(list(_figures(rounds)), remarks, list(rounds))


def _figures(rounds: Sequence[Round]) -> Iterator[Figure]:
    judged = {CONSUMING[BY_BYTES]: (None, GOAL_RESIDENT), PRODUCING: (GOAL_PRODUCED, None)}
    for title in (*CONSUMING.values(), PRODUCING):
        counted, resident = judged.get(title, (None, None))
        of = [one[title] for one in rounds]
        for name, key, goal in (
            ("most counted", "high_water_bytes", counted),
            ("most taken by the process", "resident_bytes", resident),
        ):
            values = [one[key] / MEGABYTE for one in of]
            limit = goal / MEGABYTE if goal else None
            yield Figure(f"{title}: {name}", "MiB", values, limit, at_most=True)
        if title != PRODUCING:
            yield Figure(f"{title}: largest queues", "messages", [one["queue_sizes"] for one in of])
        yield Figure(f"{title}: took", "s", [one["seconds"] for one in of])
        missing = [one["missing"] for one in of]
        yield Figure(f"{title}: not delivered", "messages", missing, 0, at_most=True)
