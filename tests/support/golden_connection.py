"""A client that replays recorded exchanges: plain sockets, blocking, one connection a case.

It knows only the framing, so that a fault in Floodgate's own client library cannot hide one in
its servers.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Self

from google.protobuf.message import DecodeError

from proto import PulsarApi_pb2 as pb
from tests.support.golden import RECORDED_BROKER, Expect, Send, Silence, with_address
from tests.support.golden_masks import differences

if TYPE_CHECKING:
    from types import TracebackType

    from tests.support.golden import Answer, Case
    from tests.support.golden_masks import Difference

ANSWER_SECONDS = 10.0
"""How long an answer or a close may take; a real Pulsar's first lookup loads a bundle."""

SILENCE_SECONDS = 0.3
"""How long ``(nothing)`` is waited for."""

SURPLUS_SECONDS = 0.02
"""How long to look for answers beyond the last that was recorded."""


class GoldenConnection:
    """One connection of the replay, closed by the block it is used in."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=ANSWER_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    def send(self, step: Send) -> None:
        """Send what a row says; a connection that the server has closed is no error."""
        data = step.raw if step.command is None else frame(step.command)
        writes = (
            [data[at : at + 1] for at in range(len(data))] if step.one_byte_at_a_time else [data]
        )
        try:
            for write in writes:
                self._socket.sendall(write)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self, seconds: float) -> Answer:
        """The next answer within ``seconds``, else ``(nothing)``, or ``(closed)``.

        Raises:
            AssertionError: What came is not a frame with a command.
        """
        self._socket.settimeout(seconds)
        try:
            (length,) = struct.unpack(">I", self._take(4))
            return parse_frame(self._take(length))
        except TimeoutError:
            assert not self._received, f"half a frame came: {bytes(self._received)!r}"
            return Silence.NOTHING
        except (EOFError, ConnectionResetError, BrokenPipeError):
            return Silence.CLOSED

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            data = self._socket.recv(65536)
            if not data:
                raise EOFError
            self._received += data
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken


def frame(command: pb.BaseCommand) -> bytes:
    """A simple frame: both lengths, then the command."""
    body = command.SerializeToString()
    return struct.pack(">II", len(body) + 4, len(body)) + body


def parse_frame(body: bytes) -> pb.BaseCommand:
    """The command of a frame whose first length has been read.

    Raises:
        AssertionError: The frame does not hold a command.
    """
    (length,) = struct.unpack(">I", body[:4])
    try:
        return pb.BaseCommand.FromString(body[4 : 4 + length])
    except DecodeError as error:
        raise AssertionError(f"an answer that is not a BaseCommand: {body[:80]!r}") from error


def replay(case: Case, address: str, broker_address: str) -> list[Difference]:
    """Send what the case sent to ``address`` and compare all that comes back.

    Args:
        case: The recorded exchange.
        address: ``host:port`` of the process under test.
        broker_address: ``host:port`` that stands for the recorded broker in what is sent.
    """
    host, _, port = address.rpartition(":")
    found: list[Difference] = []
    with GoldenConnection(host, int(port)) as connection:
        if case.connects_first:
            _connect(connection)
        for index, step in enumerate(case.steps):
            if isinstance(step, Send):
                connection.send(_to(step, broker_address))
            else:
                answer = connection.receive(_patience(step))
                found += differences(index, step.answer, _from(answer, broker_address))
        found += _surplus(connection, case, broker_address)
    return found


def _connect(connection: GoldenConnection) -> None:
    command = pb.BaseCommand(type=pb.BaseCommand.CONNECT)
    command.connect.client_version = "golden-1"
    command.connect.protocol_version = 20
    connection.send(Send(command))
    answer = connection.receive(ANSWER_SECONDS)
    assert isinstance(answer, pb.BaseCommand), f"CONNECT was answered by {answer}"
    assert answer.type == pb.BaseCommand.CONNECTED, f"CONNECT was answered by {answer}"


def _patience(step: Expect) -> float:
    return SILENCE_SECONDS if step.answer is Silence.NOTHING else ANSWER_SECONDS


def _surplus(connection: GoldenConnection, case: Case, broker_address: str) -> list[Difference]:
    """An answer, or a close, that comes after the last recorded one."""
    last = case.steps[-1]
    if isinstance(last, Send) or isinstance(last.answer, Silence):
        return []
    answer = connection.receive(SURPLUS_SECONDS)
    return differences(len(case.steps), Silence.NOTHING, _from(answer, broker_address))


def _to(step: Send, broker_address: str) -> Send:
    if step.command is None:
        return step
    command = pb.BaseCommand()
    command.CopyFrom(step.command)
    with_address(command, RECORDED_BROKER, broker_address)
    return Send(command)


def _from(answer: Answer, broker_address: str) -> Answer:
    if isinstance(answer, pb.BaseCommand):
        with_address(answer, broker_address, RECORDED_BROKER)
    return answer
