"""Yardstick for the smallest answer: a uvloop server that parses each request.

``python -m benchmarks.listings.parsing_server ANSWER_FILE`` prints ``READY parsing HOST PORT`` and
serves until it is terminated. It decodes frames and parses commands with the decoder of broker and
proxy, and writes a prepared answer: no server of the protocol can do less.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import cast

import proto.PulsarApi_pb2 as pb
from benchmarks.listings.bare_server import GREETING, serve
from proto.frames import FrameDecoder
from server.loop import run


class ParsingServer(asyncio.Protocol):
    """A connection that answers CONNECT with CONNECTED, and list requests with the answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport, without changes of its limits."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer every frame that is complete."""
        self._decoder.feed(data)
        while (frame := self._decoder.next_frame()) is not None:
            self._answer_to(frame.command())

    def _answer_to(self, command: pb.BaseCommand) -> None:
        if self._transport is None:
            return
        if command.type == pb.BaseCommand.CONNECT:
            self._transport.write(GREETING)
        elif command.getTopicsOfNamespace.namespace:
            self._transport.write(self._answer)


if __name__ == "__main__":
    answer = Path(sys.argv[1]).read_bytes()
    run(serve("parsing", lambda: ParsingServer(answer)))
