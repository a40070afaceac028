"""A child process whose start does not block the event loop.

The event loop's own subprocess start copies the page tables of this process before the program
begins: 50 ms and more for a server of 300 MB. The standard library shares them until then.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence


class ChildProcess:
    """A child with a socket pair's end as its standard input and output.

    (A socket instead of an event loop transport: if its creation is cancelled, uvloop closes the
    descriptor twice, possibly after reuse.)
    """

    def __init__(self, process: subprocess.Popen[bytes], end: socket.socket) -> None:
        self._process = process
        self._end = end

    @classmethod
    def started(cls, command: Sequence[str]) -> Self:
        """Start a program in its own process group, so that a Ctrl-C reaches only the server.

        Raises:
            OSError: It cannot be started.
        """
        here, there = socket.socketpair()
        with there:
            try:
                end = there.fileno()
                process = subprocess.Popen(command, stdin=end, stdout=end, process_group=0)
            except BaseException:
                here.close()
                raise
        here.setblocking(False)
        return cls(process, here)

    async def send(self, data: bytes) -> None:
        """Write to its standard input.

        Raises:
            OSError: It has ended.
        """
        await asyncio.get_running_loop().sock_sendall(self._end, data)

    async def receive(self, size: int) -> bytes:
        """Read exactly ``size`` bytes of its standard output.

        Raises:
            OSError, EOFError: It has ended.
        """
        data, loop = bytearray(size), asyncio.get_running_loop()
        left = memoryview(data)
        while left:
            received = await loop.sock_recv_into(self._end, left)
            if not received:
                raise EOFError(f"{len(left)} of {size} bytes are missing")
            left = left[received:]
        return bytes(data)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_gone(self) -> bool:
        """True if it has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the process; no-op if it has ended."""
        self._process.kill()

    async def gone(self) -> None:
        """Wait for its end, and close the socket; no send or receive may be pending."""
        await asyncio.to_thread(self._process.wait)
        self._end.close()
