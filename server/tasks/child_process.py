"""A child process whose start does not hold the event loop.

The loop's own way copies the tables of all memory of this process before the program begins: 50 ms
and more for a server of 300 MB. The standard library shares them until then.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence


class ChildProcess:
    """One child; its standard input and output are one socket, of which the other end is here.

    (Not pipes: uvloop closes the descriptor of a pipe that it is given twice, and the second time
    it may be somebody else's.)

    Attributes:
        stdin: What is written comes to it.
        stdout: What it writes.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
    ) -> None:
        self._process = process
        self.stdin = stdin
        self.stdout = stdout

    @classmethod
    async def started(cls, command: Sequence[str]) -> Self:
        """Start a program, in a group of its own: a Ctrl-C is for the server, which ends it.

        Raises:
            OSError: It cannot be started.
        """
        here, there = socket.socketpair()
        with there:
            try:
                process = _begun(command, there)
            except BaseException:
                here.close()
                raise
        stdout, stdin = await asyncio.open_unix_connection(sock=here)
        return cls(process, stdin, stdout)

    @property
    def pid(self) -> int:
        """Its id."""
        return self._process.pid

    @property
    def is_gone(self) -> bool:
        """True if it has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it at once. Harmless when it has ended."""
        self._process.kill()

    async def gone(self) -> None:
        """Wait until it has ended, and close the socket."""
        await asyncio.to_thread(self._process.wait)
        self.stdin.close()


def _begun(command: Sequence[str], end: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=end, stdout=end, process_group=0)
