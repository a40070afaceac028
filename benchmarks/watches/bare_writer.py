"""Yardstick for watches: a uvloop server that only writes a frame to all connections.

``python -m benchmarks.watches.bare_writer`` takes commands; see ``controlled_process``. It tracks
no watched sets, computes nothing and has default transport limits: uvloop then sends together what
a connection writes in one event-loop iteration.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

from benchmarks.command_lines import answer_commands
from server.connection.listener import raise_open_files_limit
from server.loop import run


class BareWriter(asyncio.Protocol):
    """A connection of the bare writer.

    Args:
        transports: The registry of all connected transports.
    """

    def __init__(self, transports: dict[BareWriter, asyncio.Transport]) -> None:
        self._transports = transports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Add the transport to the registry."""
        self._transports[self] = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the transport from the registry."""
        self._transports.pop(self, None)


async def serve() -> None:
    """Answer commands until standard input ends."""
    transports: dict[BareWriter, asyncio.Transport] = {}

    async def write(frame: str, events: int, writes: int) -> dict[str, Any]:
        """Write a frame (hexadecimal) ``writes`` times per event, spread over all connections."""
        data, everyone = bytes.fromhex(frame), list(transports.values())
        rounds = writes // len(everyone)
        cpu_seconds = time.process_time()
        for _ in range(events):
            for _ in range(rounds):
                for transport in everyone:
                    transport.write(data)
            # uvloop writes in the first turn of the loop; the event has ended in the second.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return {"cpu_seconds": time.process_time() - cpu_seconds}

    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BareWriter(transports), "127.0.0.1", 0, backlog=1024)
    host, port = server.sockets[0].getsockname()
    await answer_commands({"service_url": f"pulsar://{host}:{port}"}, {"write": write})


if __name__ == "__main__":
    raise_open_files_limit()
    run(serve())
