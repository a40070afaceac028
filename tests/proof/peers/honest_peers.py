"""Peers that read at a steady rate, slowly but always, in a separate process.

``python -m tests.proof.peers.honest_peers HOST:PORT NAMESPACE TOPICS HASH PEERS PIPELINED
BYTES_PER_SECOND SECONDS RECEIVE_BUFFER_BYTES`` keeps PIPELINED listings of each peer outstanding,
reads each connection at its rate, verifies every answer, and prints each peer's result as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from loadgen.engine.answer_stream import AnswerStream, Listing
from loadgen.engine.answers import AnswerChecker
from loadgen.engine.frames import PONG, list_frame
from loadgen.plan.clients import Namespace
from tests.proof.peers.silent_peers import silent_peers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.engine.answer_stream import Received
    from loadgen.engine.answers import AnswerBody
    from tests.proof.peers.silent_peers import SilentPeer

TURN_SECONDS = 0.1
"""Each peer reads once in this time."""
MOST_AT_ONCE_SECONDS = 0.3
"""A late peer reads no more than this long's worth in a read."""
SHORTEST_SLEEP_SECONDS = 0.001
_READ = bytearray(1 << 20)


class HonestPeer:
    """A connection read at a rate, and its counts.

    Args:
        peer: The connection, after its handshake.
        checker: Verifies the answers.
        expected: The expected listing.
        rate: Bytes a second.
        again: Whether each answer is followed by a new request.
    """

    def __init__(
        self,
        peer: SilentPeer,
        checker: AnswerChecker,
        expected: Namespace,
        rate: float,
        *,
        again: bool = True,
    ) -> None:
        self._socket = peer.socket
        self._socket.setblocking(False)
        self._namespace = peer.namespace
        self._checker = checker
        self._stream = AnswerStream(lambda _: checker.body(expected))
        self._rate = rate
        self._again = again
        self._allowed_bytes = 0.0
        self._last = self._last_byte = time.monotonic()
        self._unsent = bytearray()
        self.answers: list[AnswerBody] = []
        self.refusals: Counter[str] = Counter()
        self.received_bytes = 0
        self.longest_silence = 0.0
        self.closed_after: float | None = None

    def ask(self, listings: int = 1) -> None:
        """Request so many listings; bytes that the socket does not take wait for a later turn."""
        self._unsent += list_frame(1, self._namespace) * listings

    def turn(self, started: float) -> None:
        """Send buffered requests, and read up to the rate's current allowance."""
        if self.closed_after is not None:
            return
        now = time.monotonic()
        most = self._rate * MOST_AT_ONCE_SECONDS
        self._allowed_bytes = min(most, self._allowed_bytes + self._rate * (now - self._last))
        self._last = now
        try:
            self._send()
            self._read(now)
        except OSError:
            self.closed_after = now - started

    def _send(self) -> None:
        if self._unsent:
            try:
                del self._unsent[: self._socket.send(self._unsent)]
            except BlockingIOError:
                return

    def _read(self, now: float) -> None:
        view = memoryview(_READ)[: int(self._allowed_bytes)]
        if not view:
            return
        try:
            size = self._socket.recv_into(view)
        except BlockingIOError:
            self.longest_silence = max(self.longest_silence, now - self._last_byte)
            return
        if size == 0:
            raise ConnectionError
        self.longest_silence = max(self.longest_silence, now - self._last_byte)
        self._last_byte = now
        self._allowed_bytes -= size
        self.received_bytes += size
        for received, _ in self._stream.feed(view[:size]):
            self._take(received)

    def _take(self, received: Received) -> None:
        if isinstance(received, Listing):
            self.answers.append(self._checker.submit(received.body))
            self.ask(self._again)
        elif received.type == pb.BaseCommand.PING:
            self._unsent += PONG
        else:
            error = received.error
            self.refusals[f"{pb.ServerError.Name(error.error)}: {error.message}"] += 1
            self.ask(self._again)

    def figures(self) -> dict[str, object]:
        problems = [answer.verdict().problem for answer in self.answers]
        return {
            "answers": len(problems),
            "wrong": [problem for problem in problems if problem],
            "refusals": dict(self.refusals),
            "received_bytes": self.received_bytes,
            "longest_silence_s": round(self.longest_silence, 3),
            "closed_after_s": self.closed_after,
        }


def read_for(peers: Sequence[HonestPeer], seconds: float) -> None:
    """Run the peers' turns for a duration."""
    started = time.monotonic()
    turn = 0
    while time.monotonic() - started < seconds:
        take_turns(peers, started, turn)
        # A late peer does not read more often afterwards: missed turns are dropped.
        turn = max(turn + 1, int((time.monotonic() - started) / TURN_SECONDS))


def take_turns(peers: Sequence[HonestPeer], started: float, turn: int) -> None:
    """Run one turn of each peer, evenly spread over TURN_SECONDS."""
    for number, peer in enumerate(peers):
        early = started + (turn + number / len(peers)) * TURN_SECONDS - time.monotonic()
        if early > SHORTEST_SLEEP_SECONDS:
            time.sleep(early)
        peer.turn(started)


def main() -> None:
    server, namespace, topics, topics_hash, *rest = sys.argv[1:]
    number, pipelined, rate, seconds, buffer_bytes = (float(word) for word in rest)
    host, _, port = server.rpartition(":")
    expected = Namespace(name=namespace, topics=int(topics), hash=topics_hash)
    checker = AnswerChecker()
    asked = [namespace] * int(number)
    with silent_peers((host, int(port)), asked, int(buffer_bytes)) as silent:
        peers = [HonestPeer(peer, checker, expected, rate) for peer in silent]
        for peer in peers:
            peer.ask(int(pipelined))
        read_for(peers, seconds)
        sys.stdout.write(json.dumps([peer.figures() for peer in peers]) + "\n")


if __name__ == "__main__":
    main()
