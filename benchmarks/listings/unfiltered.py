"""Listings of a whole namespace, compared with a bare server that sends the same bytes.

The namespace has 10,000 names of 100 bytes. Every round measures every server once, one after the
other; a ratio compares two servers in the same round. A round is repeated if a server of a ratio
that has a goal had less than VALID_CORE_SHARE of a core: then the client, or another process, was
the bottleneck.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from benchmarks.listings.corpus import listing_answer, write_text_file
from benchmarks.listings.rate import listing_rate
from benchmarks.processes import yardstick
from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.places.server_process import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.places.server_process import ServerProcess

VALID_CORE_SHARE = 0.9
REPEATS_PER_ROUND = 2
BARE, SHARED, PRIVATE = "bare", "shared", "private"
FORWARDER, PROXY = "forwarder", "proxy"
JUDGED = (BARE, SHARED, PRIVATE)
LABELS = {
    BARE: "bare server",
    SHARED: "broker, shared buffers",
    PRIVATE: "broker, private buffers",
    FORWARDER: "forwarder",
    PROXY: "proxy, shared buffers",
}
YARDSTICKS = {SHARED: BARE, PRIVATE: BARE, PROXY: FORWARDER}
"""Yardstick of each server: the forwarder stands before the broker, like the proxy."""
GOALS: Mapping[str, float | None] = {SHARED: 0.7, PRIVATE: 0.35, PROXY: 0.8}
Round = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Contestant:
    """A server to be measured: its address and process id."""

    host: str
    port: int
    pid: int


def run(options: BenchOptions) -> BenchResult:
    """Measure all servers in each round.

    Raises:
        BenchError: A round could not be measured.
        ServerStartError: A server did not start.
    """
    answer = listing_answer()
    with (
        tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder,
        _contestants(Path(folder), answer) as contestants,
    ):
        rounds = _rounds(contestants, len(answer), options)
    return conclude(rounds, options.rounds)


@contextmanager
def _contestants(folder: Path, answer: bytes) -> Iterator[dict[str, Contestant]]:
    """Start all servers together; while one is measured, the others are idle."""
    answer_file, names_file = folder / "answer", folder / "names.txt"
    answer_file.write_bytes(answer)
    write_text_file(names_file)
    with ExitStack() as stack:
        bare = stack.enter_context(yardstick("benchmarks.listings.bare_server", str(answer_file)))
        shared, private = (
            stack.enter_context(running_server(_broker_launch(buffers, folder, names_file)))
            for buffers in (SHARED, PRIVATE)
        )
        proxy = stack.enter_context(running_server(_proxy_launch(shared, folder)))
        broker = _contestant(shared)
        forwarder = stack.enter_context(
            yardstick("benchmarks.listings.bare_forwarder", broker.host, str(broker.port))
        )
        yield {
            BARE: Contestant(bare.host, bare.port, bare.pid),
            SHARED: broker,
            PRIVATE: _contestant(private),
            FORWARDER: Contestant(forwarder.host, forwarder.port, forwarder.pid),
            PROXY: _contestant(proxy),
        }


_COMMON = {
    "webServicePort": "0",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "floodgateProfile": "floodgate",
}


def _broker_launch(buffers: str, folder: Path, names_file: Path) -> ServerLaunch:
    settings = {
        "brokerServicePort": "0",
        "metadataStoreUrl": "memory:local",
        "floodgateResponseBuffers": buffers,
        **_COMMON,
    }
    log = folder / f"broker-{buffers}.log"
    return ServerLaunch("broker", settings, log, ("--import", str(names_file)))


def _proxy_launch(broker: ServerProcess, folder: Path) -> ServerLaunch:
    settings = {"servicePort": "0", "brokerServiceURL": broker.service_url, **_COMMON}
    return ServerLaunch("proxy", settings, folder / "proxy.log")


def _contestant(server: ServerProcess) -> Contestant:
    parts = urlsplit(server.service_url)
    return Contestant(parts.hostname or "", parts.port or 0, server.pid)


def _rounds(
    contestants: Mapping[str, Contestant], answer_bytes: int, options: BenchOptions
) -> list[Round]:
    rounds: list[Round] = []
    most = options.rounds * (1 + REPEATS_PER_ROUND)
    while sum(map(valid, rounds)) < options.rounds and len(rounds) < most:
        found: Round = {}
        for name, contestant in contestants.items():
            options.note(f"round {len(rounds) + 1}: {LABELS[name]}")
            address = contestant.host, contestant.port
            found[name] = listing_rate(address, contestant.pid, answer_bytes, options.seconds)
        rounds.append(found)
    return rounds


def valid(found: Round) -> bool:
    """Return True if every server of a ratio that has a goal had enough of a core in a round."""
    return all(found[name]["core_share"] >= VALID_CORE_SHARE for name in JUDGED)


def conclude(rounds: Sequence[Round], wanted: int) -> BenchResult:
    """Return the figures of the valid rounds or, if none is valid, of all rounds with a remark."""
    good = [found for found in rounds if valid(found)]
    counted = good or rounds
    figures = [_rate(name, counted) for name in LABELS]
    figures += [_ratio(name, counted) for name in GOALS]
    figures += [_cpu(name, counted) for name in LABELS]
    figures += [_cpu_ratio(name, counted) for name in GOALS]
    shares = ", ".join(f"{name} {_lowest_share(name, rounds):.2f}" for name in LABELS)
    remarks = [f"Lowest share of a core in any round: {shares}."]
    if len(good) < wanted:
        remarks.insert(0, _shortfall(len(good), wanted, len(rounds)))
    raw: list[dict[str, Any]] = [{"valid": valid(found), **found} for found in rounds]
    return BenchResult(figures, remarks, raw)


def _shortfall(good: int, wanted: int, measured: int) -> str:
    of_all = "" if good else " The figures are of all rounds and not valid."
    return (
        f"Only {good} of {measured} rounds were valid ({wanted} wanted): a server had under "
        f"{VALID_CORE_SHARE:g} of a core.{of_all}"
    )


def _lowest_share(name: str, rounds: Sequence[Round]) -> float:
    return min(found[name]["core_share"] for found in rounds)


def _rate(name: str, rounds: Sequence[Round]) -> Figure:
    return Figure(LABELS[name], "listings/s", [found[name]["per_second"] for found in rounds])


def _ratio(name: str, rounds: Sequence[Round]) -> Figure:
    yardstick_name = YARDSTICKS[name]
    values = [found[name]["per_second"] / found[yardstick_name]["per_second"] for found in rounds]
    return Figure(f"{LABELS[name]} / {yardstick_name}", "ratio", values, GOALS[name])


def _cpu(name: str, rounds: Sequence[Round]) -> Figure:
    values = [found[name]["cpu_millis"] for found in rounds]
    return Figure(f"CPU an answer: {LABELS[name]}", "ms", values)


def _cpu_ratio(name: str, rounds: Sequence[Round]) -> Figure:
    yardstick_name = YARDSTICKS[name]
    values = [
        found[yardstick_name]["cpu_millis"] / max(1e-9, found[name]["cpu_millis"])
        for found in rounds
    ]
    return Figure(f"CPU an answer: {yardstick_name} / {LABELS[name]}", "ratio", values)
