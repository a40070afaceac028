"""Message rates of programs that use this client, and of programs with the official clients.

In each round every client runs every task in turn, against the same broker: 1 KiB messages, 1,000
outstanding sends, the same batching settings. A consumer receives the messages that its own client
has sent. Ratios compare rates in the same round.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.processes import run_json
from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.places.operator_files import local_broker
from loadgen.places.server_process import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OURS, ASYNCIO, BLOCKING = "client", "pulsar.asyncio", "pulsar.Client"
CLIENTS = (OURS, ASYNCIO, BLOCKING)
BATCHED, SINGLE = "batched send", "single send"
RECEIVE, SCALED, FIXED = "receive", "auto-scaled", "fixed 1,000"
ROUNDS = 5
GOALS = {BATCHED: 2.0, RECEIVE: 0.7, SINGLE: 1.0}
SCALED_GOAL = 0.9
SETTINGS = {
    **local_broker(),
    # Fast rounds must not reach the limit.
    "floodgateMessageStoreMaxMB": "8192",
}
Round = dict[str, dict[str, float]]


def run(options: BenchOptions) -> BenchResult:
    """Measure the rates of all clients, in at most five rounds.

    Raises:
        BenchError: A round could not be measured.
        ServerStartError: The broker did not start.
    """
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder:
        for number in range(min(options.rounds, ROUNDS)):
            # A new broker in each round, without the messages of earlier rounds.
            launch = ServerLaunch("broker", SETTINGS, Path(folder) / f"{number}.log")
            with running_server(launch) as server:
                rounds.append(_measured(server.service_url, options, number))
    return conclude(rounds)


def _measured(url: str, options: BenchOptions, number: int) -> Round:
    found: Round = {}
    for name in CLIENTS:
        options.note(f"round {number + 1}: {name}")
        found[name] = run_json("benchmarks.client.program", url, name, f"{options.seconds}")
    return found


def conclude(rounds: Sequence[Round]) -> BenchResult:
    """Return the figures of all rounds as a benchmark result."""
    return BenchResult(list(_figures(rounds)), rounds=list(rounds))


def _figures(rounds: Sequence[Round]) -> Iterator[Figure]:
    for task in (BATCHED, SINGLE, RECEIVE):
        for name in CLIENTS:
            rates = [one[name][task] for one in rounds]
            yield Figure(f"{task}: {name}", "messages/s", rates)
        for name in (ASYNCIO, BLOCKING):
            ratios = [one[OURS][task] / one[name][task] for one in rounds]
            yield Figure(f"{task}, beside {name}", "ratio", ratios, GOALS[task])
    for task in (SCALED, FIXED):
        yield Figure(f"receive, {task}", "messages/s", [one[OURS][task] for one in rounds])
    ratios = [one[OURS][SCALED] / one[OURS][FIXED] for one in rounds]
    yield Figure("receive, auto-scaled beside fixed", "ratio", ratios, SCALED_GOAL)
