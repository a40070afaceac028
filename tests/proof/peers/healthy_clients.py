"""Healthy clients in a separate process, so that their times exclude their neighbours' work.

``python -m tests.proof.peers.healthy_clients HOST:PORT NAMESPACE TOPICS HASH CLIENTS PERIOD_MS
PACE`` lists the namespace by each client every PERIOD_MS, or directly after a late answer, until
standard input ends. Each listing is a line of output: the monotonic clock of the request, the
seconds until the answer, and its outcome: ``right``, or the failure.

With the pace ``due`` listings are due by the clock, evenly spread over the clients: a listing
delayed by its predecessor counts from its due time. ``anew`` is the same with a new connection for
each, opened at the due time. With the pace ``asked`` the next is due a period after the last
request.
"""

import asyncio
import struct
import sys
import time
from contextlib import suppress

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock, deadline
from loadgen.engine.frames import PONG, connect_frame, list_frame
from loadgen.plan.clients import Namespace
from proto.parsing.parser import parse_command
from proto.topics_response import read_topics_head
from server.loop import run
from tests.proof.peers.conversation import Truth, WrongAnswerError

OPERATION_SECONDS = 30.0
"""Request timeout of a Pulsar client."""
RECONNECT_SECONDS = 0.05
RIGHT = "right"
ASKED = "asked"
DUE = "due"
ANEW = "anew"
NO_ANSWER = f"no answer in {OPERATION_SECONDS:g} s"
DISCONNECTED = "disconnected"
_LENGTH = struct.Struct(">I")
_READ_LIMIT_BYTES = 1 << 20


class HealthyClient:
    """A connection that lists on a schedule, one listing at a time."""

    def __init__(
        self,
        address: tuple[str, int],
        truth: Truth,
        period_seconds: float,
        number: int,
        first_due: float | None = None,
        *,
        anew: bool = False,
    ) -> None:
        self._address = address
        self._truth = truth
        self._period_seconds = period_seconds
        self._request_id = 1 + number
        self._due = first_due
        self._anew = anew

    async def run(self) -> None:
        """Connect and list repeatedly."""
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._talk()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _talk(self) -> None:
        first = await self._next_start() if self._anew else None
        reader, writer = await asyncio.open_connection(*self._address, limit=_READ_LIMIT_BYTES)
        try:
            writer.write(connect_frame())
            await _frame(reader)
            if first is not None:
                await self._list(reader, writer, first)
                return
            while True:
                started = await self._next_start()
                await self._list(reader, writer, started)
                if self._due is None:
                    await _sleep_until(started + self._period_seconds)
        finally:
            writer.transport.abort()

    async def _next_start(self) -> float:
        """Wait for the next listing; return its start time."""
        if self._due is None:
            return time.monotonic()
        due = self._due
        self._due += self._period_seconds
        await _sleep_until(due)
        return due

    async def _list(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, started: float
    ) -> None:
        expected = self._truth.namespaces[0]
        writer.write(list_frame(self._request_id, expected.name))
        try:
            async with deadline(LoopClock(), OPERATION_SECONDS):
                frame = await self._answer(reader, writer)
        except TimeoutError:
            _report(started, NO_ANSWER)
            raise ConnectionError from None
        except (OSError, asyncio.IncompleteReadError):
            _report(started, DISCONNECTED)
            raise
        _report(started, self._judged(frame, expected))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Return the next frame that is not a PING; answer PINGs."""
        while True:
            frame = await _frame(reader)
            if read_topics_head(frame) is not None:
                return frame
            if parse_command(frame[_LENGTH.size :]).type != pb.BaseCommand.PING:
                return frame
            writer.write(PONG)

    def _judged(self, frame: bytes, expected: Namespace) -> str:
        found = read_topics_head(frame)
        if found is None:
            command = parse_command(frame[_LENGTH.size :])
            error = command.error
            return f"{pb.ServerError.Name(error.error)}: {error.message}".replace("\n", " ")
        request_id, offset = found
        if request_id != self._request_id:
            return f"request {self._request_id} was answered as {request_id}"
        try:
            self._truth.verify(expected, frame[offset:])
        except WrongAnswerError as error:
            return str(error)
        return RIGHT


def _report(started: float, outcome: str) -> None:
    sys.stdout.write(f"{started:.6f} {time.monotonic() - started:.6f} {outcome}\n")
    sys.stdout.flush()


async def _sleep_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(size)


async def list_until_input_ends(
    address: tuple[str, int], truth: Truth, clients: int, period_seconds: float, pace: str
) -> None:
    begun, apart = time.monotonic(), period_seconds / clients
    dues = [None if pace == ASKED else begun + number * apart for number in range(clients)]
    tasks = [
        asyncio.create_task(
            HealthyClient(address, truth, period_seconds, number, due, anew=pace == ANEW).run()
        )
        for number, due in enumerate(dues)
    ]
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    server, namespace, topics, topics_hash, clients, period_ms, pace = sys.argv[1:]
    host, _, port = server.rpartition(":")
    expected = Namespace(name=namespace, topics=int(topics), hash=topics_hash)
    truth = Truth([expected])
    period_seconds = float(period_ms) / 1000
    run(list_until_input_ends((host, int(port)), truth, int(clients), period_seconds, pace))


if __name__ == "__main__":
    main()
