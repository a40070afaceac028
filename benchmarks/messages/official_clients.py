"""Messages of 1 KiB, sent and received by the official Java and Python clients.

Every round measures every server once with each client, one after the other: single messages, then
batches. If PULSAR_SERVICE_URL and PULSAR_PID name a real broker, it is measured too, and the rates
are compared. A client that is not available is left out, with a sentence.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.messages.rates import BARE, BATCHED, MEMORY, REAL, SINGLE, SQLITE, running_servers
from benchmarks.processes import json_of
from benchmarks.result import BenchOptions, BenchResult, Figure
from tests.official.clients import ClientMissingError, java_client, python_client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.processes import MeasuredServer

BATCHES = {SINGLE: 1, BATCHED: 100}
MOST_ROUNDS = 3
"""A round takes more than a minute."""
GOALS_OF_REAL = {(BATCHED, MEMORY): 1.0, (BATCHED, SQLITE): 0.5}
"""Goal, relative to a real broker's rate with the same client."""
_RATES = Path(__file__).resolve().parents[2] / "tests" / "official" / "python" / "rates.py"
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
Found = dict[str, dict[str, dict[str, float]]]
"""By client and mode, then by server."""


def run(options: BenchOptions) -> BenchResult:
    """Measure every server with each official client in each round.

    Raises:
        BenchError: A round could not be measured.
        ServerStartError: A server did not start.
    """
    drivers, remarks = _drivers()
    rounds: list[Found] = []
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder:
        for number in range(min(options.rounds, MOST_ROUNDS) if drivers else 0):
            with running_servers(Path(folder) / str(number)) as servers:
                del servers[BARE]  # The bare server has no partitions and no acknowledgements.
                rounds.append(_measured(drivers, servers, options, number))
    return BenchResult(list(conclude(rounds)), remarks, rounds)


def _drivers() -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the command of each available client, and a sentence for each missing one."""
    drivers: dict[str, tuple[str, ...]] = {}
    missing: list[str] = []
    try:
        java, *options, _ = java_client().command
        drivers["Java client"] = (java, _QUIET, *options, "Rates")
    except ClientMissingError as error:
        missing.append(str(error))
    try:
        drivers["Python client"] = (python_client().command[0], "-B", str(_RATES))
    except ClientMissingError as error:
        missing.append(str(error))
    return drivers, missing


def _measured(
    drivers: Mapping[str, Sequence[str]],
    servers: Mapping[str, MeasuredServer],
    options: BenchOptions,
    number: int,
) -> Found:
    found: Found = {}
    for client, command in drivers.items():
        for mode, batch in BATCHES.items():
            of_servers = found[f"{client}, {mode}"] = {}
            for name, (host, port, pid) in servers.items():
                options.note(f"round {number + 1}: {client}, {mode}, {name}")
                topic = f"persistent://public/default/official-{time.time_ns()}"
                words = (f"pulsar://{host}:{port}", pid, topic, batch, options.seconds)
                of_servers[name] = json_of(client, *command, *map(str, words))
    return found


def conclude(rounds: Sequence[Found]) -> Iterator[Figure]:
    """Yield the figures of all rounds."""
    for what in rounds[0] if rounds else ():
        mode = what.rpartition(" ")[2]
        for way in ("in", "out"):
            for server in rounds[0][what]:
                of = [found[what][server] for found in rounds]
                rates = [one[f"{way}_per_second"] for one in of]
                yield Figure(f"{what} {way}: {server}", "messages/s", rates)
                cpu = [one[f"{way}_cpu_micros"] for one in of]
                yield Figure(f"CPU a message, {what} {way}: {server}", "us", cpu)
                if REAL in rounds[0][what] and server != REAL:
                    real = [found[what][REAL][f"{way}_per_second"] for found in rounds]
                    parts = [ours / theirs for ours, theirs in zip(rates, real, strict=True)]
                    goal = GOALS_OF_REAL.get((mode, server))
                    yield Figure(f"{what} {way}: {server} / {REAL}", "ratio", parts, goal)
