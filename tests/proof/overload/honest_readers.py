"""500 peers that read 100 kB/s each, against a limiter with permanent waiters.

Every peer requests more than the kernel's buffers hold, so that it always pins contended memory. It
acknowledges bytes continuously, so no peer may be closed. With small kernel buffers an answer
leaves as fast as the peer reads; with the kernel's default send buffer the server sees no progress
for much longer than the grace.
"""

import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from benchmarks.processes import ROOT
from loadgen.places.server_process import ServerProcess
from tests.proof.overload.mid_topics import MID, mid_expectation, write_mid_topics
from tests.proof.overload.recorded_limits import (
    ROLES,
    cluster,
    held,
    limiter_report,
    limits,
    server_of,
)
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import check_logs, check_nothing_held, server_address, settled_figures

PEERS, QUICK_PEERS = 500, 40
SECONDS, QUICK_SECONDS = 45.0, 20.0
BYTES_PER_SECOND = 100_000
PIPELINED = 16
LIMIT_MB = 48
DEFAULT_BUFFERS_LIMIT_MB = 16
"""Large kernel buffers fill in bursts; less memory is requested between bursts."""
QUICK_PART = 6
"""Factor by which a quick proof's memory is smaller."""
TIMEOUT_MILLIS = 25_000
RECEIVE_BUFFER_BYTES = 65_536
SMALL_SEND_BUFFER_BYTES = 65_536
LOOK_SECONDS = 0.5
DIRECT_SHARE = 0.8
"""When the kernel takes all answers simultaneously, briefly no request waits for direct memory."""
WARM_UP_SECONDS = 5.0
START_SECONDS = 60.0
Peers = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A run: its server, and the socket buffer size (0: the kernel's default)."""

    role: str
    send_buffer_bytes: int

    @property
    def title(self) -> str:
        size = f"{self.send_buffer_bytes // 1024} KiB" if self.send_buffer_bytes else "default"
        return f"{self.role}, {size} send buffers"

    @property
    def name(self) -> str:
        return f"{self.role}-{self.send_buffer_bytes}"

    @property
    def limit_mb(self) -> int:
        return LIMIT_MB if self.send_buffer_bytes else DEFAULT_BUFFERS_LIMIT_MB


@dataclass(frozen=True)
class Waiting:
    """Samples of the number of waiting requests."""

    heap: int
    direct: int

    @property
    def total(self) -> int:
        return self.heap + self.direct


def prove(options: ProofOptions) -> ProofResult:
    topics = options.out / "mid.parquet"
    write_mid_topics(topics, [MID])
    result = ProofResult()
    for role in ROLES:
        for size in (SMALL_SEND_BUFFER_BYTES, 0):
            _prove_case(options, Case(role, size), result)
    return result


def _prove_case(options: ProofOptions, case: Case, result: ProofResult) -> None:
    options.note(case.title)
    keys = {
        "floodgateProfile": "floodgate",
        "floodgateResponseBuffers": "private",
        "floodgateSocketSendBufferBytes": str(case.send_buffer_bytes),
        **limits(case.limit_mb // (QUICK_PART if options.quick else 1), TIMEOUT_MILLIS),
    }
    topics = options.out / "mid.parquet"
    with cluster(options.out / case.name, keys, [topics]) as servers:
        peers, waiting = _read(server_of(case.role, servers), options)
        nothing = {one.module: settled_figures(one) for one in servers}
    result.figures[case.title] = _figures(peers, waiting)
    _judge(case, peers, waiting, result)
    check_nothing_held(nothing, result, f"{case.title}: ")
    check_logs(options.out / case.name, result, f"{case.title}: ")


def _read(server: ServerProcess, options: ProofOptions) -> tuple[Peers, list[Waiting]]:
    """Read with all peers while sampling the number of waiting requests."""
    number, seconds = (QUICK_PEERS, QUICK_SECONDS) if options.quick else (PEERS, SECONDS)
    expected = mid_expectation(MID)
    what = [MID, expected.topics, expected.hash, number, PIPELINED, BYTES_PER_SECOND, seconds]
    address = "{}:{}".format(*server_address(server))
    words = [str(word) for word in (*what, RECEIVE_BUFFER_BYTES)]
    command = [sys.executable, "-m", "tests.proof.peers.honest_peers", address, *words]
    output = options.out / "readers.json"
    waiting: list[Waiting] = []
    # A pipe would hold less than the output of 500 peers.
    with output.open("wb") as file, running(command, file) as process:
        give_up = time.monotonic() + seconds + START_SECONDS
        while process.poll() is None and time.monotonic() < give_up:
            found = held(limiter_report(server))
            waiting.append(Waiting(found["heap_queue"], found["direct_queue"]))
            time.sleep(LOOK_SECONDS)
        if process.poll() != 0:
            raise ProofError(f"the readers ended with {process.poll()}")
    return json.loads(output.read_bytes()), _while_all_read(waiting)


@contextmanager
def running(command: list[str], output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process for a block; kill it at the end."""
    process = subprocess.Popen(command, stdout=output, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _while_all_read(waiting: list[Waiting]) -> list[Waiting]:
    """Drop the samples from the peers' arrival and departure."""
    first = next((index for index, one in enumerate(waiting) if one.total), len(waiting))
    return waiting[first + int(WARM_UP_SECONDS / LOOK_SECONDS) : -2]


def _figures(peers: Peers, waiting: list[Waiting]) -> dict[str, Any]:
    refusals: Counter[str] = Counter()
    for peer in peers:
        refusals.update(peer["refusals"])
    return {
        "peers": len(peers),
        "closed": sum(peer["closed_after_s"] is not None for peer in peers),
        "answers": sum(peer["answers"] for peer in peers),
        "wrong": [problem for peer in peers for problem in peer["wrong"]],
        "refusals": dict(refusals),
        "fewest_answers": min(peer["answers"] for peer in peers),
        "median_answers": statistics.median(peer["answers"] for peer in peers),
        "fewest_bytes": min(peer["received_bytes"] for peer in peers),
        "received_bytes": sum(peer["received_bytes"] for peer in peers),
        "longest_silence_s": max(peer["longest_silence_s"] for peer in peers),
        "fewest_waiting": min((one.total for one in waiting), default=0),
        "most_waiting": max((one.total for one in waiting), default=0),
        "share_waiting_for_direct": statistics.fmean([one.direct > 0 for one in waiting] or [0]),
    }


def _judge(case: Case, peers: Peers, waiting: list[Waiting], result: ProofResult) -> None:
    title, found = case.title, _figures(peers, waiting)
    result.check(
        f"{title}: somebody always waits",
        found["fewest_waiting"] > 0 and found["share_waiting_for_direct"] >= DIRECT_SHARE,
        f"{title}: {found['fewest_waiting']:,} to {found['most_waiting']:,} requests waited, seen "
        f"{len(waiting)} times; {found['share_waiting_for_direct']:.0%} of the times some for "
        "direct memory",
    )
    result.check(
        f"{title}: nobody is closed",
        found["closed"] == 0,
        f"{title}: {found['closed']} of {found['peers']} honest readers were closed",
    )
    result.check(
        f"{title}: everyone makes progress",
        found["fewest_answers"] > 0 and not found["wrong"],
        f"{title}: {found['fewest_answers']} answers or more each, {found['answers']:,} in all, "
        f"{len(found['wrong'])} wrong, {sum(found['refusals'].values())} refused; "
        f"{found['received_bytes'] / 1e6:,.0f} MB read, nobody less than "
        f"{found['fewest_bytes'] / 1e6:.1f} MB, at most {found['longest_silence_s']:.1f} s "
        "without a byte" + "".join(f"; {problem}" for problem in found["wrong"][:1]),
    )
