"""A client that sends PINGs and measures each PONG, in a separate process.

``python -m tests.proof.peers.pinging``; see benchmarks.controlled_process.
"""

import asyncio
from time import perf_counter
from typing import Any, cast

import proto.PulsarApi_pb2 as pb
from benchmarks.command_lines import answer_commands
from loadgen.engine.frames import PONG, connect_frame
from proto.frames import Frame, FrameDecoder, encode_command
from server.loop import run

INTERVAL_SECONDS = 0.005
_PING = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))


class Pinger(asyncio.Protocol):
    """Sends a PING every 5 ms, one at a time.

    Mutable state: the time of an unanswered PING, and the earlier response times.
    """

    def __init__(self) -> None:
        self._decoder = FrameDecoder()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._sent_at: float | None = None
        self._seconds: list[float] = []
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(connect_frame())

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    def data_received(self, data: bytes) -> None:
        self._decoder.feed(data)
        while (frame := self._decoder.next_frame()) is not None:
            self._received(frame)

    def _received(self, frame: Frame) -> None:
        kind = frame.command().type
        assert self._transport is not None
        if kind == pb.BaseCommand.PING:
            self._transport.write(PONG)
        elif kind == pb.BaseCommand.PONG and self._sent_at is not None:
            took = perf_counter() - self._sent_at
            self._sent_at = None
            self._seconds.append(took)
            self._loop.call_later(max(0.0, INTERVAL_SECONDS - took), self._ping)
        elif kind == pb.BaseCommand.CONNECTED:
            self._ping()

    def _ping(self) -> None:
        if self._transport is not None and not self.closed:
            self._sent_at = perf_counter()
            self._transport.write(_PING)

    async def take(self) -> dict[str, Any]:
        """Return the response times since the last call, in ms, including an unanswered PING's
        wait.
        """
        seconds, self._seconds = self._seconds, []
        if self._sent_at is not None:
            seconds.append(perf_counter() - self._sent_at)
        seconds.sort()
        return {
            "pings": len(seconds),
            "worst_ms": 1000 * max(seconds, default=0.0),
            "p99_ms": 1000 * seconds[int(0.99 * len(seconds))] if seconds else 0.0,
            "closed": self.closed,
        }


async def main() -> None:
    pingers: list[Pinger] = []

    async def ping(url: str) -> dict[str, Any]:
        host, _, port = url.removeprefix("pulsar://").rpartition(":")
        loop = asyncio.get_running_loop()
        _, pinger = await loop.create_connection(Pinger, host, int(port))
        pingers[:] = [pinger]
        return {}

    async def take() -> dict[str, Any]:
        return await pingers[0].take()

    await answer_commands({}, {"ping": ping, "take": take})


if __name__ == "__main__":
    run(main())
