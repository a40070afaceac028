"""One client pipelines 2,048 listings of 4 MB, reads nothing for a while, and then reads all.

The server may hold little more than the direct limit, whatever the number of requests; and without
other waiters no peer may be closed. On broker and proxy, with shared and with private buffers.
"""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from benchmarks.listings.corpus import NAMESPACE, listing_names, write_text_file
from loadgen.engine.answer_stream import AnswerStream, Listing
from loadgen.engine.answers import AnswerChecker
from loadgen.engine.frames import PONG
from loadgen.plan.clients import Namespace
from proto.topic_hash import topics_hash
from tests.proof.overload.recorded_limits import ROLES, cluster, limits, server_of
from tests.proof.peers.silent_peers import silent_peers
from tests.proof.process_memory import peak_resident_bytes, reset_peak, resident_bytes
from tests.proof.result import ProofResult
from tests.proof.servers import check_logs, check_nothing_held, server_address, settled_figures

if TYPE_CHECKING:
    from loadgen.engine.answer_stream import Received
    from loadgen.places.server_process import ServerProcess
    from tests.proof.peers.silent_peers import SilentPeer
    from tests.proof.result import ProofOptions

NAMES = 40_000
ANSWERS, QUICK_ANSWERS = 2_048, 256
SILENT_SECONDS, QUICK_SILENT_SECONDS = 10.0, 4.0
LIMIT_MB = 32
TIMEOUT_MILLIS = 25_000
OVER_LIMIT_BYTES = 64_000_000
READ_SECONDS = 240.0
PATIENCE_SECONDS = 60.0
"""Longest wait of the client for a byte, or for writability."""
_READ = bytearray(1 << 20)


@dataclass(frozen=True)
class Case:
    """A run: its server, and the sharing of answers."""

    role: str
    buffers: str

    @property
    def title(self) -> str:
        return f"{self.role}, {self.buffers} buffers"


@dataclass
class Reading:
    """The client's answers.

    Attributes:
        asked: Requested listings.
        answered: Request ids of right answers, repeated if duplicated.
        problems: Wrong answers.
        seconds: Time to read all.
        received_bytes: Bytes received.
        grown_bytes: Peak resident memory over idle, of each server on the way.
    """

    asked: int
    answered: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    received_bytes: int = 0
    grown_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """True if every request was answered right, once."""
        return not self.problems and sorted(self.answered) == list(range(1, self.asked + 1))


def prove(options: ProofOptions) -> ProofResult:
    topics = options.out / "topics.txt"
    write_text_file(topics, NAMES)
    result = ProofResult()
    for role in ROLES:
        for buffers in ("shared", "private"):
            case = Case(role, buffers)
            options.note(case.title)
            _prove_case(options, case, result)
    return result


def _prove_case(options: ProofOptions, case: Case, result: ProofResult) -> None:
    logs = options.out / f"{case.role}-{case.buffers}"
    keys = {
        "floodgateProfile": "floodgate",
        "floodgateResponseBuffers": case.buffers,
        **limits(LIMIT_MB, TIMEOUT_MILLIS),
    }
    with cluster(logs, keys, [options.out / "topics.txt"]) as servers:
        involved = servers if case.role == "proxy" else servers[:1]
        idle = {one.module: resident_bytes(one.pid) for one in involved}
        for one in involved:
            reset_peak(one.pid)
        found = _read_all(server_of(case.role, servers), options)
        for one in involved:
            found.grown_bytes[one.module] = peak_resident_bytes(one.pid) - idle[one.module]
        nothing = {one.module: settled_figures(one) for one in servers}
    figures = asdict(found)
    result.figures[case.title] = {**figures, "answered": len(found.answered), "idle_bytes": idle}
    _judge(case, found, result)
    check_nothing_held(nothing, result, f"{case.title}: ")
    check_logs(logs, result, f"{case.title}: ")


def _read_all(server: ServerProcess, options: ProofOptions) -> Reading:
    """Request, wait, read everything."""
    asked = QUICK_ANSWERS if options.quick else ANSWERS
    found = Reading(asked)
    expected = Namespace(name=NAMESPACE, topics=NAMES, hash=topics_hash(listing_names(NAMES)))
    with silent_peers(server_address(server), [NAMESPACE]) as (peer,):
        peer.socket.settimeout(PATIENCE_SECONDS)
        # The server stops reading before it has all requests: the rest is sent between answers.
        asking = threading.Thread(target=peer.ask, args=(asked,), daemon=True)
        asking.start()
        time.sleep(QUICK_SILENT_SECONDS if options.quick else SILENT_SECONDS)
        started = time.monotonic()
        try:
            _Reader(peer, expected, found).read_until(started + READ_SECONDS)
        except OSError as error:
            found.problems.append(f"the connection ended: {error}")
        found.seconds = time.monotonic() - started
    return found


class _Reader:
    """Reads a connection; every answer is compared with the first, which is verified."""

    def __init__(self, peer: SilentPeer, expected: Namespace, found: Reading) -> None:
        self._socket = peer.socket
        self._found = found
        self._checker = AnswerChecker()
        self._stream = AnswerStream(lambda _: self._checker.body(expected))

    def read_until(self, give_up: float) -> None:
        """Read until this number of answers has arrived."""
        found, view = self._found, memoryview(_READ)
        while len(found.answered) + len(found.problems) < found.asked:
            if time.monotonic() > give_up:
                raise TimeoutError(f"not all answers came in {READ_SECONDS:g} s")
            size = self._socket.recv_into(view)
            if not size:
                raise ConnectionError("the server closed it")
            found.received_bytes += size
            for received, _ in self._stream.feed(view[:size]):
                self._take(received)

    def _take(self, received: Received) -> None:
        if isinstance(received, Listing):
            problem = self._checker.submit(received.body).verdict().problem
            if problem is None:
                self._found.answered.append(received.request_id)
            else:
                self._found.problems.append(problem)
        elif received.type == pb.BaseCommand.PING:
            self._socket.sendall(PONG)
        else:
            self._found.problems.append(f"{received.error.message or received.type}")


def _judge(case: Case, found: Reading, result: ProofResult) -> None:
    rate = found.received_bytes / 1e6 / max(found.seconds, 1e-9)
    result.check(
        f"{case.title}: every answer intact",
        found.whole,
        f"{case.title}: {len(found.answered):,} of {found.asked:,} answers came intact, "
        f"{found.received_bytes / 1e9:.1f} GB in {found.seconds:.0f} s ({rate:,.0f} MB/s)"
        + "".join(f"; {len(found.problems)} others: {problem}" for problem in found.problems[:1]),
    )
    allowed = LIMIT_MB * 1024 * 1024 + OVER_LIMIT_BYTES
    for module, grown in found.grown_bytes.items():
        result.check(
            f"{case.title}: memory of the {module}",
            grown < allowed,
            f"{case.title}: the {module} grew by {grown / 1e6:.0f} MB over idle, allowed are "
            f"{allowed / 1e6:.0f} MB (the direct limit and {OVER_LIMIT_BYTES / 1e6:.0f} MB)",
        )
