"""Listings of a whole namespace, compared with a bare server that sends the same bytes.

The namespace has 10,000 names of 100 bytes. Every round measures every server once, one after the
other; a ratio compares two servers in the same round. A round is repeated if a server of a ratio
that has a goal had less than VALID_CORE_SHARE of a core: then the client, or another process, was
the bottleneck.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.listings.corpus import answer_of, listing_names, write_text_file
from benchmarks.listings.rate import listing_rate
from benchmarks.processes import MeasuredServer, measured_server, yardstick
from benchmarks.result import BenchOptions, BenchResult, Figure
from benchmarks.valid_rounds import VALID_CORE_SHARE, conclude_valid, valid_rounds
from loadgen.places.operator_files import local_broker, local_proxy
from loadgen.places.server_process import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.places.server_process import ServerProcess

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
PROFILE = {"floodgateProfile": "floodgate"}
Round = dict[str, dict[str, float]]


def run(options: BenchOptions) -> BenchResult:
    """Measure all servers in each round.

    Raises:
        BenchError: A round could not be measured.
        ServerStartError: A server did not start.
    """
    answer = answer_of(listing_names())
    with (
        tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder,
        _contestants(Path(folder), answer) as contestants,
    ):
        measure = partial(_round, contestants, len(answer), options)
        rounds = valid_rounds(options.rounds, measure, valid)
    return conclude(rounds, options.rounds)


@contextmanager
def _contestants(folder: Path, answer: bytes) -> Iterator[dict[str, MeasuredServer]]:
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
        broker = measured_server(shared)
        forwarder = stack.enter_context(
            yardstick("benchmarks.listings.bare_forwarder", broker.host, str(broker.port))
        )
        yield {
            BARE: bare,
            SHARED: broker,
            PRIVATE: measured_server(private),
            FORWARDER: forwarder,
            PROXY: measured_server(proxy),
        }


def _broker_launch(buffers: str, folder: Path, names_file: Path) -> ServerLaunch:
    settings = {**local_broker(), **PROFILE, "floodgateResponseBuffers": buffers}
    log = folder / f"broker-{buffers}.log"
    return ServerLaunch("broker", settings, log, ("--import", str(names_file)))


def _proxy_launch(broker: ServerProcess, folder: Path) -> ServerLaunch:
    settings = {**local_proxy(broker.service_url, broker.web_url), **PROFILE}
    return ServerLaunch("proxy", settings, folder / "proxy.log")


def _round(
    contestants: Mapping[str, MeasuredServer],
    answer_bytes: int,
    options: BenchOptions,
    number: int,
) -> Round:
    found: Round = {}
    for name, server in contestants.items():
        options.note(f"round {number}: {LABELS[name]}")
        found[name] = listing_rate(server, answer_bytes, options.seconds)
    return found


def valid(found: Round) -> bool:
    """Return True if every server of a ratio that has a goal had enough of a core in a round."""
    return all(found[name]["core_share"] >= VALID_CORE_SHARE for name in JUDGED)


def conclude(rounds: Sequence[Round], wanted: int) -> BenchResult:
    """Return the figures of the valid rounds or, if none is valid, of all rounds with a remark."""
    shares = ", ".join(f"{name} {_lowest_share(name, rounds):.2f}" for name in LABELS)
    remark = f"Lowest share of a core in any round: {shares}."
    return conclude_valid(rounds, wanted, valid, _figures, "a server", remark)


def _figures(rounds: Sequence[Round]) -> list[Figure]:
    return [
        *(_rate(name, rounds) for name in LABELS),
        *(_ratio(name, rounds) for name in GOALS),
        *(_cpu(name, rounds) for name in LABELS),
        *(_cpu_ratio(name, rounds) for name in GOALS),
    ]


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
