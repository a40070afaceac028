"""A connection with sequential requests and answers of any size."""

from __future__ import annotations

import socket
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import proto.PulsarApi_pb2 as pb
from loadgen.engine.frames import PONG, connect_frame
from proto.frames import encode_command
from tests.proof.result import ProofError

PATIENCE_SECONDS = 300.0
_LENGTH_BYTES = 4
_PARSED_BYTES = 4_096
"""Longer answers are lists, whose size shows completeness."""
_READ_BYTES = 1 << 20
_TAIL_BYTES = 64


class Answer(NamedTuple):
    """An answer.

    Attributes:
        size_bytes: The whole frame.
        command: The parsed command; None for a long frame.
        tail: The last bytes, with a list's hash.
    """

    size_bytes: int
    command: pb.BaseCommand | None
    tail: bytes = b""


class Asker:
    """A connection.

    Args:
        url: Of the server.
        tunnel_to: ``host:port`` of the broker behind a proxy's tunnel.
    """

    def __init__(self, url: str, tunnel_to: str | None = None) -> None:
        parts = urlsplit(url)
        address = (parts.hostname or "", parts.port or 0)
        self._socket = socket.create_connection(address, PATIENCE_SECONDS)
        self._requests = 0
        self._socket.sendall(connect_frame(tunnel_to))
        self._expect(self.answer(), pb.BaseCommand.CONNECTED)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def next_id(self) -> int:
        self._requests += 1
        return self._requests

    def ask(self, command: pb.BaseCommand) -> Answer:
        self.send(command)
        return self.answer()

    def send(self, command: pb.BaseCommand) -> None:
        """Send a command whose answer is read later."""
        self._socket.sendall(encode_command(command))

    def answer(self) -> Answer:
        """Return the next answer, without keep-alives.

        Raises:
            ProofError: The connection was closed, or a request refused.
        """
        while True:
            size = int.from_bytes(self._read(_LENGTH_BYTES), "big")
            if size > _PARSED_BYTES:
                return Answer(size + _LENGTH_BYTES, None, self._skip(size))
            command = pb.BaseCommand.FromString(self._read(size)[_LENGTH_BYTES:])
            if command.type == pb.BaseCommand.ERROR:
                raise ProofError(f"{command.error.error}: {command.error.message}")
            if command.type != pb.BaseCommand.PING:
                return Answer(size + _LENGTH_BYTES, command)
            self._socket.sendall(PONG)

    @staticmethod
    def _expect(answer: Answer, kind: int) -> None:
        if answer.command is None or answer.command.type != kind:
            raise ProofError(f"answered with {answer}")

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            received = self._socket.recv(size - len(data))
            if not received:
                raise ProofError("the connection was closed")
            data += received
        return bytes(data)

    def _skip(self, size: int) -> bytes:
        tail = b""
        while size:
            received = self._socket.recv(min(size, _READ_BYTES))
            if not received:
                raise ProofError("the connection was closed")
            size -= len(received)
            tail = (tail + received[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        return tail
