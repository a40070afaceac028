"""Yardstick for the proxy: a uvloop process that copies bytes to a server and back.

``python -m benchmarks.listings.bare_forwarder HOST PORT`` prints ``READY forwarder HOST PORT`` and
serves until it is terminated. Each client has its own connection to the server, and bytes are not
parsed: no proxy can do less. While the buffer of one side is full, the opposite side is not read.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

from benchmarks.listings.bare_server import serve
from server.loop import run


class Leg(asyncio.Protocol):
    """One side of a pair of connections; the bytes that it receives go to the opposite side."""

    def __init__(self, other: Leg | None = None) -> None:
        self.other = other
        self.transport: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the bytes that arrived before this side was connected."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.writelines(self._early)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        """Forward received bytes to the opposite side immediately."""
        if self.other is not None:
            self.other.write(data)

    def write(self, data: bytes) -> None:
        """Write bytes; before this side is connected, keep them in a buffer."""
        if self.transport is None:
            self._early.append(data)
        else:
            self.transport.write(data)

    def pause_writing(self) -> None:
        """Stop reading from the opposite side, because the buffer of this side is full."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Resume reading from the opposite side."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, _: Exception | None) -> None:
        """Close the opposite side as well."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class ClientLeg(Leg):
    """The client's side of a pair, which opens the connection to the server."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._target = host, port
        self._opening: asyncio.Task[object] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the connection to the server for a new client."""
        super().connection_made(transport)
        self.other = Leg(self)
        loop, server_leg = asyncio.get_running_loop(), self.other
        opened = loop.create_connection(lambda: server_leg, *self._target)
        self._opening = loop.create_task(opened)


if __name__ == "__main__":
    host, port = sys.argv[1], int(sys.argv[2])
    run(serve("forwarder", lambda: ClientLeg(host, port)))
