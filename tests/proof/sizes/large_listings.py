"""Listings of a large namespace by one client over a plain socket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import proto.PulsarApi_pb2 as pb
from loadgen.engine.frames import PONG
from proto.frames import encode_command
from proto.topic_hash import topics_hash
from tests.proof.peers.silent_peers import SilentPeer
from tests.proof.result import ProofError

PATIENCE_SECONDS = 120.0
_LENGTH_BYTES = 4
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class Answer:
    """The answer to a listing.

    Attributes:
        seconds: From the request's first byte to the answer's last.
        size_bytes: The whole frame.
        command: The parsed command.
    """

    seconds: float
    size_bytes: int
    command: pb.BaseCommand

    def problem(self, expected: Sequence[str]) -> str | None:
        """Return the problem of a listing; None when it is right."""
        if self.command.HasField("error"):
            return f"refused: {self.command.error.message}"
        response = self.command.getTopicsOfNamespaceResponse
        if sorted(response.topics) != sorted(expected):
            return f"{len(response.topics):,} names came, wanted were {len(expected):,}"
        if response.HasField("topics_hash") and response.topics_hash != topics_hash(expected):
            return "the hash is wrong"
        return None


class LargeClient:
    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("pulsar://").rpartition(":")
        self._socket = SilentPeer((host, int(port)), "").socket
        self._socket.settimeout(PATIENCE_SECONDS)
        self._requests = 0

    def list(
        self, namespace: str, pattern: str | None = None, properties: Mapping[str, str] = NOTHING
    ) -> Answer:
        """Request a listing and read the whole answer.

        Raises:
            ProofError: The connection was closed.
        """
        self._requests += 1
        request = pb.CommandGetTopicsOfNamespace(
            request_id=self._requests,
            namespace=namespace,
            mode=pb.CommandGetTopicsOfNamespace.PERSISTENT,
            topics_pattern=pattern,
            properties=[pb.KeyValue(key=key, value=value) for key, value in properties.items()],
        )
        kind = pb.BaseCommand.GET_TOPICS_OF_NAMESPACE
        asked = encode_command(pb.BaseCommand(type=kind, getTopicsOfNamespace=request))
        began = perf_counter()
        self._socket.sendall(asked)
        while True:
            frame = self._frame()
            seconds = perf_counter() - began
            command = pb.BaseCommand.FromString(frame[_LENGTH_BYTES:])
            if command.type != pb.BaseCommand.PING:
                return Answer(seconds, len(frame) + _LENGTH_BYTES, command)
            self._socket.sendall(PONG)

    def leave(self) -> None:
        self._socket.close()

    def _frame(self) -> bytes:
        size = int.from_bytes(self._read(_LENGTH_BYTES), "big")
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            count = self._socket.recv_into(view[done:])
            if not count:
                raise ProofError("the broker closed the connection")
            done += count
        return bytes(data)
