"""The conversation of a soak's client: connect, request, and leave at a random stage.

Every whole answer is verified: number of topics, their hash, request id.
"""

import asyncio
import random
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock, deadline
from loadgen.engine.answers import verify_answer
from loadgen.engine.frames import connect_frame, list_frame
from loadgen.plan.clients import Namespace
from proto.parsing.parser import parse_command
from proto.topics_response import read_topics_head

CONVERSATION_SECONDS = 60.0
RECEIVE_BUFFER_BYTES = 16_384
SLOW_CHUNK_BYTES = 16_384
SLOW_PAUSE_SECONDS = 0.02
_LENGTH = struct.Struct(">I")
_RESET = struct.pack("ii", 1, 0)


class Stage(StrEnum):
    """The stage at which a client leaves."""

    CONNECTED = "vanishes before CONNECT"
    HANDSHAKE = "vanishes after CONNECT"
    ASKED = "vanishes after asking"
    SILENT = "asks five times, reads nothing, vanishes"
    FIRST_BYTES = "vanishes at the first bytes"
    HALF = "vanishes in the middle of the answer"
    SLOW = "reads slowly to the end"
    WHOLE = "reads to the end, asks again"


class Outcome(StrEnum):
    RIGHT = "right answers"
    WRONG = "wrong answers"
    REFUSED = "refused requests"
    LEFT = "left on purpose"
    DISCONNECTED = "disconnected by the server"
    UNREACHABLE = "no connection"
    TIMEOUT = "no answer in time"


class WrongAnswerError(Exception):
    """An answer differs from the namespace; with the reason."""


class Truth:
    """The right listings; after its verification an answer is compared as bytes.

    Bound: one answer a namespace.
    """

    def __init__(self, namespaces: Sequence[Namespace]) -> None:
        self.namespaces = namespaces
        self._right: dict[str, bytes] = {}

    def verify(self, expected: Namespace, body: bytes) -> None:
        """Check an answer without its request id.

        Raises:
            WrongAnswerError: The answer is wrong.
        """
        if self._right.get(expected.name) == body:
            return
        problem = verify_answer(body, expected).problem
        if problem is not None:
            raise WrongAnswerError(f"{expected.name}: {problem}")
        self._right[expected.name] = body


@dataclass(frozen=True)
class Plan:
    """One conversation."""

    address: tuple[str, int]
    expected: Namespace
    stage: Stage
    request_id: int


async def converse(plan: Plan, truth: Truth, chance: random.Random) -> list[Outcome]:
    """Run a conversation.

    Returns:
        An outcome for each answered request, and an outcome for any other end.

    Raises:
        WrongAnswerError: An answer was wrong.
    """
    outcomes: list[Outcome] = []
    try:
        async with deadline(LoopClock(), CONVERSATION_SECONDS):
            await _Conversation(plan, truth, chance, outcomes).run()
    except TimeoutError:
        outcomes.append(Outcome.TIMEOUT)
    except (asyncio.IncompleteReadError, ConnectionError):
        outcomes.append(Outcome.DISCONNECTED)
    return outcomes


class _Conversation:
    def __init__(
        self, plan: Plan, truth: Truth, chance: random.Random, outcomes: list[Outcome]
    ) -> None:
        self._plan = plan
        self._truth = truth
        self._chance = chance
        self._outcomes = outcomes

    async def run(self) -> None:
        connection = await self._connect()
        if connection is None:
            self._outcomes.append(Outcome.UNREACHABLE)
            return
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            await self._talk(reader, writer)
        finally:
            # Half of the clients close with a reset, as a killed process does.
            if self._chance.random() < 0.5:
                with suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()

    async def _connect(self) -> socket.socket | None:
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        try:
            await asyncio.get_running_loop().sock_connect(connection, self._plan.address)
        except OSError:
            connection.close()
            return None
        except BaseException:
            connection.close()
            raise
        return connection

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stage = self._plan.stage
        if stage is Stage.CONNECTED:
            self._outcomes.append(Outcome.LEFT)
            return
        writer.write(connect_frame())
        if stage is Stage.HANDSHAKE:
            self._outcomes.append(Outcome.LEFT)
            return
        await _frame(reader)
        if stage in (Stage.ASKED, Stage.SILENT):
            await self._ask_and_leave(writer)
        elif stage in (Stage.FIRST_BYTES, Stage.HALF):
            await self._leave_within_the_answer(reader, writer)
        else:
            await self._read_to_the_end(reader, writer)

    def _ask(self, writer: asyncio.StreamWriter) -> None:
        writer.write(list_frame(self._plan.request_id, self._plan.expected.name))

    async def _ask_and_leave(self, writer: asyncio.StreamWriter) -> None:
        if self._plan.stage is Stage.ASKED:
            self._ask(writer)
            await asyncio.sleep(self._chance.choice((0.0, 0.001, 0.05)))
        else:
            for _ in range(5):
                self._ask(writer)
            await asyncio.sleep(self._chance.uniform(0.1, 3.0))
        self._outcomes.append(Outcome.LEFT)

    async def _leave_within_the_answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._ask(writer)
        (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        enough = 1 if self._plan.stage is Stage.FIRST_BYTES else size // 2
        while enough > 0:
            enough -= len(await _some(reader, enough))
        self._outcomes.append(Outcome.LEFT)

    async def _read_to_the_end(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        slow = self._plan.stage is Stage.SLOW
        for _ in range(1 if slow else self._chance.randint(1, 4)):
            self._ask(writer)
            frame = await _frame(reader, SLOW_PAUSE_SECONDS if slow else 0.0)
            self._outcomes.append(self._judged(frame))

    def _judged(self, frame: bytes) -> Outcome:
        found = read_topics_head(frame)
        if found is None:
            command = parse_command(frame[_LENGTH.size :])
            if command.type != pb.BaseCommand.ERROR:
                raise WrongAnswerError(f"a command of type {command.type} came as an answer")
            return Outcome.REFUSED
        request_id, offset = found
        if request_id != self._plan.request_id:
            raise WrongAnswerError(f"request {self._plan.request_id} was answered as {request_id}")
        self._truth.verify(self._plan.expected, frame[offset:])
        return Outcome.RIGHT


async def _frame(reader: asyncio.StreamReader, pause_seconds: float = 0.0) -> bytes:
    """Read a frame and return its bytes after the length field."""
    (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    chunks: list[bytes] = []
    while size:
        chunks.append(await _some(reader, min(size, SLOW_CHUNK_BYTES) if pause_seconds else size))
        size -= len(chunks[-1])
        if pause_seconds:
            await asyncio.sleep(pause_seconds)
    return b"".join(chunks)


async def _some(reader: asyncio.StreamReader, most: int) -> bytes:
    chunk = await reader.read(most)
    if not chunk:
        raise asyncio.IncompleteReadError(b"", most)
    return chunk
