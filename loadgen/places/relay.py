"""A relay between clients and a server that can cut or slow down the network link.

The relay runs in a thread of this process, and only for scenarios with such a shock, because
relaying is slower than the loopback. Connections to the brokers' own addresses bypass the relay.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, suppress

import uvloop

from loadgen.engine.connecting import (
    CONNECTING_AT_ONCE,
    parse_service_url,
    raise_open_file_limit,
)
from loadgen.errors import UsageError
from loadgen.workers import in_thread

_CHUNK_BYTES = 16_384
_HOST = "127.0.0.1"


class Relay:
    """A TCP relay that runs in a thread during a ``with`` block, and can cut or slow the link.

    Mutable state: whether the link is cut, and the link's speed.

    Bound: a chunk and a kernel buffer for each direction of a connection.

    Args:
        service_url: The URL of the server to which the relay connects.
        connections: The largest number of simultaneous connections.

    Attributes:
        service_url: The relay's own address, within the block.
    """

    def __init__(self, service_url: str, connections: int) -> None:
        if not service_url.startswith("pulsar:"):
            raise UsageError(f"a TLS link ({service_url}) can be neither cut nor slowed")
        raise_open_file_limit(2 * connections)
        self._target = parse_service_url(service_url)
        self._whole, self._end = asyncio.Event(), ExitStack()
        self._rate = self._free_at = 0.0

    def __enter__(self) -> Relay:
        listens = socket.create_server((_HOST, 0), backlog=CONNECTING_AT_ONCE)
        self.service_url = f"pulsar://{_HOST}:{listens.getsockname()[1]}"
        running = in_thread("relay", self._serve(listens), uvloop.new_event_loop)
        self._loop = self._end.enter_context(running)
        return self

    def __exit__(self, *exc: object) -> None:
        self._end.close()

    def cut(self) -> None:
        """Stop passing bytes: connections stall, and new connections get no answer."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Pass bytes again, at full speed."""
        self._rate = 0.0
        self._loop.call_soon_threadsafe(self._whole.set)

    def slow(self, rate: float) -> None:
        """Limit the speed of all connections together, in bytes a second; 0 means unlimited."""
        self._rate = rate

    async def _serve(self, listens: socket.socket) -> None:
        """Accept clients' connections until the ``with`` block ends."""
        self._whole.set()
        listening = await asyncio.start_server(self._pass_on, sock=listens, limit=_CHUNK_BYTES)
        try:
            await asyncio.Event().wait()
        finally:
            listening.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):
            await self._whole.wait()
            try:
                there, back = await asyncio.open_connection(*self._target, limit=_CHUNK_BYTES)
            except OSError:
                writer.transport.abort()
                return
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while data := await reader.read(_CHUNK_BYTES):
                    await self._turn(len(data))
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.transport.close()

    async def _turn(self, size: int) -> None:
        """Wait until the link, which may be cut or slow, lets ``size`` more bytes pass."""
        await self._whole.wait()
        if self._rate:
            self._free_at = max(self._free_at, self._loop.time()) + size / self._rate
            await asyncio.sleep(self._free_at - self._loop.time())
            await self._whole.wait()
