"""Messages of 1 KiB, single and in batches, compared with a bare server.

Every round measures every server once, one after the other. The figure that counts is the server's
processor time per message: the client, which shares the machine's cores, limits all rates. Brokers
store messages in memory, in a temporary database (the default), in a permanent database, and in a
database that is synced to disk before a message is confirmed; the bare server uses a list. If
PULSAR_SERVICE_URL and PULSAR_PID name a real broker, it is measured in the same rounds.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.processes import (
    MeasuredServer,
    address_of,
    measured_server,
    run_json,
    yardstick,
)
from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.places.operator_files import local_broker
from loadgen.places.server_process import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BARE, MEMORY, TEMPORARY = "bare server", "broker, memory", "broker, temporary database"
SQLITE, FSYNC, REAL = "broker, SQLite", "broker, SQLite with fsync", "Apache Pulsar"
SINGLE, BATCHED, PACED = "single", "batched", "paced"
MODES = (SINGLE, BATCHED, PACED)
STORES: Mapping[str, str] = {
    MEMORY: "memory",
    TEMPORARY: "temporary",
    SQLITE: "sqlite://{}/messages.db",
    FSYNC: "sqlite://{}/synced.db?fsync=true",
}
GOALS_CPU_MICROS = {
    (SINGLE, MEMORY): 30.0,
    (SINGLE, SQLITE): 60.0,
    (BATCHED, MEMORY): 2.0,
    (BATCHED, SQLITE): 4.0,
}
"""A database may take twice as long as memory."""
GOALS_MILLIS = {"p50_millis": 1.0, "p99_millis": 5.0}
Round = dict[str, dict[str, dict[str, float]]]


def run(options: BenchOptions) -> BenchResult:
    """Measure every server in each round.

    Raises:
        BenchError: A round could not be measured.
        ServerStartError: A server did not start.
    """
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder:
        for number in range(options.rounds):
            # New servers in each round, without the messages of earlier rounds.
            with running_servers(Path(folder) / str(number)) as servers:
                rounds.append(_measured(servers, options, number))
    return conclude(rounds)


@contextmanager
def running_servers(folder: Path) -> Iterator[dict[str, MeasuredServer]]:
    """Run one server of each kind during a ``with`` block, with its files in a new folder."""
    folder.mkdir()
    with ExitStack() as stack:
        bare = stack.enter_context(yardstick("benchmarks.messages.bare_server"))
        servers = {BARE: bare}
        for name in STORES:
            server = stack.enter_context(running_server(_launch(name, folder)))
            servers[name] = measured_server(server)
        if url := os.environ.get("PULSAR_SERVICE_URL"):
            servers[REAL] = MeasuredServer(*address_of(url), int(os.environ["PULSAR_PID"]))
        yield servers


def _launch(name: str, folder: Path) -> ServerLaunch:
    settings = {
        **local_broker(),
        "floodgateProfile": "floodgate",
        # Two fast seconds must not reach the limit.
        "floodgateMessageStoreMaxMB": "8192",
        "floodgateMessageStore": STORES[name].format(folder),
    }
    return ServerLaunch("broker", settings, folder / f"{name.replace(' ', '-')}.log")


def _measured(servers: Mapping[str, MeasuredServer], options: BenchOptions, number: int) -> Round:
    found: Round = {mode: {} for mode in MODES}
    for mode in MODES:
        for name, address in servers.items():
            options.note(f"round {number + 1}: {mode}, {name}")
            words = (*address, mode, options.seconds)
            found[mode][name] = run_json("benchmarks.messages.client", *map(str, words))
    return found


def conclude(rounds: Sequence[Round]) -> BenchResult:
    """Return the figures of all rounds as a benchmark result."""
    names = list(rounds[0][SINGLE])
    figures = [
        *(one for mode in (SINGLE, BATCHED) for one in _throughput(mode, names, rounds)),
        *(one for name in names for one in _paced(name, rounds)),
    ]
    remarks = ["The rates are limited by the client, which has one of the machine's cores."]
    return BenchResult(figures, remarks, list(rounds))


def _throughput(mode: str, names: Sequence[str], rounds: Sequence[Round]) -> Iterator[Figure]:
    for way in ("in", "out"):
        for name in names:
            of = [found[mode][name] for found in rounds]
            rates = [one[f"{way}_per_second"] for one in of]
            yield Figure(f"{mode} {way}: {name}", "messages/s", rates)
            goal = GOALS_CPU_MICROS.get((mode, name))
            cpu = [one[f"{way}_cpu_micros"] for one in of]
            yield Figure(f"CPU a message, {mode} {way}: {name}", "us", cpu, goal, at_most=True)


def _paced(name: str, rounds: Sequence[Round]) -> Iterator[Figure]:
    of = [found[PACED][name] for found in rounds]
    for key, goal in GOALS_MILLIS.items():
        values = [one[key] for one in of]
        judged = goal if name == MEMORY else None
        text = f"1,000/s end to end, {key.removesuffix('_millis')}: {name}"
        yield Figure(text, "ms", values, judged, at_most=True)
    cpu = [one["cpu_micros"] for one in of]
    yield Figure(f"CPU a message at 1,000/s: {name}", "us", cpu)
