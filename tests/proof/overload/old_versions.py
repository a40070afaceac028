"""Topics change while 200 slow readers each hold an older version of the namespace.

Four readers request each version, and read nothing until all versions are held: the charge must be
the sum of the distinct answers. Then they read slowly while topics continue to change, and each
must receive its version, whole. Topics are imported by the broker over REST; the readers are the
broker's clients, or the proxy's.
"""

import json
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.listing.responses import topics_response
from broker.topic_lists.listing import TopicListing
from broker.topic_lists.sequence import TopicSequence
from loadgen.engine.answers import AnswerChecker
from loadgen.places.server_process import ServerProcess
from loadgen.plan.clients import Namespace
from proto.topic_hash import topics_hash
from tests.proof.overload.mid_topics import MID, PARTITIONS, mid_names
from tests.proof.overload.recorded_limits import (
    ROLES,
    cluster,
    held,
    limiter_report,
    limits,
    server_of,
)
from tests.proof.peers.healthy import wait_until
from tests.proof.peers.honest_peers import HonestPeer, take_turns
from tests.proof.peers.silent_peers import SilentPeer, silent_peers
from tests.proof.process_memory import resident_bytes
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import check_logs, check_nothing_held, server_address, settled_figures

READERS_PER_VERSION = 4
VERSIONS, QUICK_VERSIONS = 50, 10
LATER_CHANGES = 20
NEW_TOPICS = 10
"""Topics added by each change."""
BYTES_PER_SECOND = 100_000
LIMIT_MB = 100
TIMEOUT_MILLIS = 25_000
REQUEST_ID_BYTES = 9
"""Largest excess of a proxy's request id over its clients'; it is charged as well."""
SEND_BUFFER_BYTES = 65_536
RECEIVE_BUFFER_BYTES = 16_384
HOLD_SECONDS = 10.0
READ_SECONDS = 60.0
IMPORT_SECONDS = 10.0
_IMPORT = "/admin/v2/floodgate/import"


@dataclass(frozen=True)
class Version:
    """A state of the namespace.

    Attributes:
        number: Number of earlier changes.
        expected: The expected listing.
        command_bytes: A listing's charge of direct memory.
    """

    number: int
    expected: Namespace
    command_bytes: int


@dataclass
class Found:
    """The observations of a run.

    Attributes:
        held_bytes: Direct memory acquired when all versions were held.
        expected_bytes: The sum of the commands of all distinct versions.
        all_bytes: All outstanding answers without sharing.
        right: Answers with the reader's version.
        problems: All remaining answers.
        closed: Readers whose connection was closed.
        resident_bytes: Of the server while all versions were held.
    """

    held_bytes: int = 0
    expected_bytes: int = 0
    all_bytes: int = 0
    right: int = 0
    problems: list[str] = field(default_factory=list)
    closed: int = 0
    resident_bytes: int = 0


def prove(options: ProofOptions) -> ProofResult:
    versions = QUICK_VERSIONS if options.quick else VERSIONS
    imports = _write_changes(options.out / "imports", versions + LATER_CHANGES)
    result = ProofResult()
    for role in ROLES:
        options.note(role)
        keys = {
            "floodgateProfile": "floodgate",
            "floodgateSocketSendBufferBytes": str(SEND_BUFFER_BYTES),
            **limits(LIMIT_MB, TIMEOUT_MILLIS),
        }
        folder = {"floodgateImportDirectory": str(imports.resolve())}
        with cluster(options.out / role, keys, [_change(imports, 0)], **folder) as servers:
            found = _Run(servers, role, imports).carried_out(versions)
            nothing = {one.module: settled_figures(one) for one in servers}
        result.figures[role] = vars(found)
        _judge(role, found, versions, result)
        check_nothing_held(nothing, result, f"{role}: ")
        check_logs(options.out / role, result, f"{role}: ")
    return result


def _write_changes(imports: Path, changes: int) -> Path:
    """Write the broker's first import, and each change's additions."""
    imports.mkdir(parents=True, exist_ok=True)
    names = mid_names(MID, PARTITIONS + changes * NEW_TOPICS)
    _change(imports, 0).write_text("\n".join(names[:PARTITIONS]))
    for number in range(1, changes + 1):
        end = PARTITIONS + number * NEW_TOPICS
        _change(imports, number).write_text("\n".join(names[end - NEW_TOPICS : end]))
    return imports


def _change(imports: Path, number: int) -> Path:
    return imports / f"change-{number}.txt"


def version(number: int) -> Version:
    """Return the namespace after so many changes."""
    names = mid_names(MID, PARTITIONS + number * NEW_TOPICS)
    listing = TopicListing(TopicSequence.from_names(name.encode() for name in names))
    response = topics_response(1, listing, listing.hash, filtered=False, changed=True)
    expected = Namespace(name=MID, topics=len(names), hash=topics_hash(names))
    return Version(number, expected, response.command_bytes)


class _Run:
    """The readers of a server, and the changes of the broker behind it."""

    def __init__(
        self, servers: tuple[ServerProcess, ServerProcess], role: str, imports: Path
    ) -> None:
        self._broker = servers[0]
        self._server = server_of(role, servers)
        self._imports = imports
        self._found = Found()
        self._readers: list[HonestPeer] = []

    def carried_out(self, versions: int) -> Found:
        """Hold all versions in the readers, then read while topics change."""
        asked = [MID] * (versions * READERS_PER_VERSION)
        address = server_address(self._server)
        with silent_peers(address, asked, RECEIVE_BUFFER_BYTES) as peers:
            for number in range(versions):
                first = number * READERS_PER_VERSION
                self._hold(version(number), peers[first : first + READERS_PER_VERSION])
                self._import(number + 1)
            self._found.held_bytes = held(limiter_report(self._server))["direct_bytes"]
            self._found.resident_bytes = resident_bytes(self._server.pid)
            self._read(versions)
        return self._found

    def _hold(self, state: Version, peers: list[SilentPeer]) -> None:
        """Request a version by its readers, and wait until the server holds their answers."""
        before = held(limiter_report(self._server))["direct_bytes"]
        self._found.expected_bytes += state.command_bytes
        self._found.all_bytes += state.command_bytes * len(peers)
        for peer in peers:
            reader = HonestPeer(
                peer, AnswerChecker(), state.expected, BYTES_PER_SECOND, again=False
            )
            peer.socket.settimeout(HOLD_SECONDS)
            peer.ask(1)
            peer.socket.setblocking(False)
            self._readers.append(reader)
        wanted = before + state.command_bytes
        with suppress(ProofError):  # the final holdings are judged
            wait_until(lambda: self._settled(wanted), HOLD_SECONDS, "the answers of a version")

    def _settled(self, wanted: int) -> bool:
        figures = held(limiter_report(self._server))
        return figures["direct_bytes"] >= wanted and not figures["heap_bytes"]

    def _read(self, versions: int) -> None:
        """Read everything slowly while topics change."""
        started, turn, changes = time.monotonic(), 0, versions
        while any(not _done(one) for one in self._readers):
            if time.monotonic() - started > READ_SECONDS:
                break
            take_turns(self._readers, started, turn)
            turn += 1
            if changes < versions + LATER_CHANGES and turn % 2 == 0:
                changes += 1
                self._import(changes)
        for reader in self._readers:
            verdicts = [answer.verdict().problem for answer in reader.answers]
            self._found.right += sum(problem is None for problem in verdicts)
            self._found.problems += [problem for problem in verdicts if problem]
            self._found.problems += list(reader.refusals)
            self._found.closed += reader.closed_after is not None

    def _import(self, number: int) -> None:
        body = json.dumps({"path": str(_change(self._imports, number).resolve())})
        url, json_type = f"{self._broker.web_url}{_IMPORT}", {"Content-Type": "application/json"}
        request = urllib.request.Request(url, body.encode(), json_type, method="POST")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=IMPORT_SECONDS) as response:
            answer: dict[str, Any] = json.load(response)
        if answer["topics"] != NEW_TOPICS:
            raise ProofError(f"a change of {NEW_TOPICS} topics came to {answer}")


def _done(reader: HonestPeer) -> bool:
    answered = len(reader.answers) + sum(reader.refusals.values())
    return answered > 0 or reader.closed_after is not None


def _judge(role: str, found: Found, versions: int, result: ProofResult) -> None:
    readers = versions * READERS_PER_VERSION
    result.check(
        f"{role}: charged once",
        abs(found.held_bytes - found.expected_bytes) <= versions * REQUEST_ID_BYTES,
        f"{role}: {found.held_bytes:,} bytes of direct memory were held for {versions} distinct "
        f"versions of {found.expected_bytes:,} bytes; {readers} readers waited for "
        f"{found.all_bytes:,} bytes of them; resident {found.resident_bytes / 1e6:.0f} MB",
    )
    result.check(
        f"{role}: every reader gets its version",
        found.right == readers and not found.problems and not found.closed,
        f"{role}: {found.right} of {readers} answers are the version that was asked for, whole; "
        f"{len(found.problems)} are not, {found.closed} readers were closed"
        + "".join(f"; {problem}" for problem in found.problems[:1]),
    )
