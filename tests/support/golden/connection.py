"""A client that replays recorded exchanges: plain sockets, blocking.

Knows only the framing, so that faults in Floodgate's client library cannot hide faults in its
servers.
"""

import socket
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from google.protobuf.message import DecodeError

from proto import PulsarApi_pb2 as pb
from tests.support.golden.exchange import (
    RECORDED_BROKER,
    Answer,
    Case,
    Close,
    Expect,
    Rest,
    Send,
    Silence,
    Step,
    with_address,
)
from tests.support.golden.masks import Difference, differences
from tests.support.golden.message_frames import (
    LedgerIds,
    answers_in_a_row,
    delayed_send,
    is_about_messages,
    is_message,
    payload_difference,
    rank,
)
from tests.support.golden.rest import RECORDED_WEB, ask
from tests.support.golden.watches import WatchedTopics, updates_of_one_change, without_hash
from tests.support.peers.frames import frame, pong, split_frame

ANSWER_SECONDS = 60.0
"""Limit for an answer or a close; Pulsar's first lookup loads a bundle."""

SILENCE_SECONDS = 0.3
"""Silence that counts as the answer ``(nothing)``."""

SURPLUS_SECONDS = 0.02
"""Waiting time for surplus answers after the last recorded one."""


class GoldenConnection:
    """A connection of the replay, closed by its block.

    Attributes:
        payload: Bytes behind the last frame's command.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=ANSWER_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._unsent = b""
        self.payload = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, step: Send, *, more_follows: bool = False) -> None:
        """Send a row's bytes; a connection closed by the server is no error.

        Consecutive sends share a write: whether the server can answer in between must not depend on
        the machine.
        """
        data = self._unsent + _bytes(step)
        self._unsent = data if more_follows else b""
        if more_follows:
            return
        writes = (
            [data[at : at + 1] for at in range(len(data))] if step.one_byte_at_a_time else [data]
        )
        try:
            for write in writes:
                self._socket.sendall(write)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self, seconds: float) -> Answer:
        """Read the next answer within ``seconds``, else ``(nothing)``, or ``(closed)``.

        Answers the server's PINGs and skips them.

        Raises:
            AssertionError: The bytes are not a frame with a command.
        """
        self._socket.settimeout(seconds)
        try:
            command = self._command()
            while command.type == pb.BaseCommand.PING:
                self._socket.sendall(frame(pong()))
                command = self._command()
        except TimeoutError:
            assert not self._received, f"half a frame came: {bytes(self._received)!r}"
            return Silence.NOTHING
        except (EOFError, ConnectionResetError, BrokenPipeError):
            return Silence.CLOSED
        return command

    def _command(self) -> pb.BaseCommand:
        (length,) = struct.unpack(">I", self._take(4))
        body = self._take(length)
        try:
            command, self.payload = split_frame(body)
        except DecodeError as error:
            raise AssertionError(f"an answer that is not a BaseCommand: {body[:80]!r}") from error
        return command

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            data = self._socket.recv(65536)
            if not data:
                raise EOFError
            self._received += data
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken


def _bytes(step: Send) -> bytes:
    if step.delivered_in_ms:
        return delayed_send(int(time.time() * 1_000), step.delivered_in_ms)
    return step.raw if step.command is None else frame(step.command)


@dataclass(frozen=True)
class Place:
    """A case's servers, each ``host:port``.

    Attributes:
        address: The process under test.
        broker: Replaces the recorded broker in sent rows.
        web: The broker's web port, for calls in between.
        tunnel_to: The proxy's tunnel target; empty for none.
    """

    address: str
    broker: str
    web: str = ""
    tunnel_to: str = ""


def replay(case: Case, place: Place) -> list[Difference]:
    """Send a case's rows and compare all answers."""
    with ExitStack() as exits:
        return Replay(case, place, exits).run()


class Replay:
    """A case on its connections, each opened at first use."""

    def __init__(
        self, case: Case, place: Place, exits: ExitStack, ledgers: LedgerIds | None = None
    ) -> None:
        self._case = case
        self._place = place
        self._exits = exits
        self._connections: list[GoldenConnection] = []
        self._watched = WatchedTopics()
        self._ledgers = ledgers or LedgerIds()
        self._found: list[Difference] = []

    def run(self) -> list[Difference]:
        """Play every step; return the differences."""
        steps, index = self._case.steps, 0
        while index < len(steps):
            updates = updates_of_one_change(steps, index)
            answers = answers_in_a_row(steps, index) if is_about_messages(self._case) else []
            if updates:
                self._updates(index, updates)
            elif answers:
                self._answers(index, answers)
            else:
                self._step(index, steps[index])
            index += max(len(updates), len(answers), 1)
        self._surplus()
        return self._found

    def play(self, case: Case) -> list[Difference]:
        """Play another case's steps on the same connections; return the differences."""
        self._case, self._found = case, []
        return self.run()

    def _step(self, index: int, step: Step) -> None:
        if isinstance(step, Rest):
            status = ask(self._place.web, step).status
            if status != step.status:
                found = Difference(index, f"REST {step.method}", str(step.status), str(status))
                self._found.append(found)
        elif isinstance(step, Send):
            connection, behind = self._connection(step.connection), self._case.steps[index + 1 :]
            more_follows = bool(behind) and _goes_with(step, behind[0])
            sent = _to(step, self._place.broker, self._ledgers)
            connection.send(sent, more_follows=more_follows)
        elif isinstance(step, Close):
            self._connection(step.connection).close()
        elif isinstance(step, Expect):
            answer = self._receive(step.connection, _patience(step))
            self._watched.take(step.connection, answer)
            self._found += differences(index, step.answer, answer)

    def _answers(self, index: int, answers: Sequence[Expect]) -> None:
        """Compare a connection's answers: messages may come before or after answers."""
        came: list[tuple[Answer, bytes]] = []
        for step in answers:
            answer = self._receive(step.connection, ANSWER_SECONDS)
            came.append((answer, self._connection(step.connection).payload))
            if isinstance(answer, Silence):
                came += [(answer, b"")] * (len(answers) - len(came))
                break
        came.sort(key=lambda one: rank(one[0]))
        for at, step in enumerate(sorted(answers, key=lambda one: rank(one.answer)), index):
            answer, payload = came[at - index]
            self._ledgers.learn(step.answer, answer)
            self._watched.take(step.connection, answer)
            self._found += differences(at, step.answer, answer)
            if is_message(answer):
                self._found += payload_difference(at, step.payload, payload)

    def _updates(self, index: int, updates: Sequence[Expect]) -> None:
        """Compare a change's updates: the store decides their order, each hash is the set's."""
        recorded, answered = [], []
        for at, step in enumerate(updates, index):
            answer = self._receive(step.connection, ANSWER_SECONDS)
            self._found += self._watched.differences(at, step.connection, answer)
            recorded.append(without_hash(step.answer))
            answered.append(without_hash(answer))
        pairs = zip(sorted(recorded, key=str), sorted(answered, key=str), strict=True)
        for at, pair in enumerate(pairs, index):
            self._found += differences(at, *pair)

    def _receive(self, connection: int, seconds: float) -> Answer:
        while True:
            answer = _from(self._connection(connection).receive(seconds), self._place)
            if not (self._case.without_messages and is_message(answer)):
                return answer

    def _connection(self, number: int) -> GoldenConnection:
        while len(self._connections) <= number:
            host, _, port = self._place.address.rpartition(":")
            opened = self._exits.enter_context(GoldenConnection(host, int(port)))
            self._connections.append(opened)
            if self._case.connects_first:
                handshake(opened, self._place.tunnel_to)
        return self._connections[number]

    def _surplus(self) -> None:
        """Read an answer or a close after the last recorded answer."""
        last = self._case.steps[-1]
        if not isinstance(last, Expect) or isinstance(last.answer, Silence):
            return
        answer = self._receive(last.connection, SURPLUS_SECONDS)
        self._found += differences(len(self._case.steps), Silence.NOTHING, answer)


def handshake(connection: GoldenConnection, tunnel_to: str = "") -> None:
    command = pb.BaseCommand(type=pb.BaseCommand.CONNECT)
    command.connect.client_version = "golden-1"
    command.connect.protocol_version = 20
    if tunnel_to:
        command.connect.proxy_to_broker_url = tunnel_to
    connection.send(Send(command))
    answer = connection.receive(ANSWER_SECONDS)
    assert isinstance(answer, pb.BaseCommand), f"CONNECT was answered by {answer}"
    assert answer.type == pb.BaseCommand.CONNECTED, f"CONNECT was answered by {answer}"


def _goes_with(step: Send, following: Step) -> bool:
    """Tell whether a row was sent right behind another on the same connection."""
    together = isinstance(following, Send) and following.connection == step.connection
    return together and not step.one_byte_at_a_time and not following.one_byte_at_a_time


def _patience(step: Expect) -> float:
    return SILENCE_SECONDS if step.answer is Silence.NOTHING else ANSWER_SECONDS


def _to(step: Send, broker_address: str, ledgers: LedgerIds) -> Send:
    if step.command is None:
        return step
    command = pb.BaseCommand()
    command.CopyFrom(step.command)
    with_address(command, RECORDED_BROKER, broker_address)
    ledgers.put_into(command)
    return Send(command)


def _from(answer: Answer, place: Place) -> Answer:
    if isinstance(answer, pb.BaseCommand):
        with_address(answer, place.broker, RECORDED_BROKER)
        if place.web:
            with_address(answer, place.web, RECORDED_WEB)
    return answer
