"""Worker processes for work of unknown duration, which would block the server's event loop.

Each piece of work has its own process, which is killed at a timeout or when no caller waits; the
event loop only passes bytes. The event loop's own subprocess start copies the page tables of this
process before the program begins: 50 ms and more for a server of 300 MB. The standard library
shares them until then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import subprocess
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from limiter.tasks import BackgroundTasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence


class ChildProcess:
    """A child process whose standard input and output are a socket.

    (A socket instead of an event loop transport: if its creation is cancelled, uvloop closes the
    descriptor twice, possibly after reuse.)
    """

    def __init__(self, process: subprocess.Popen[bytes], end: socket.socket) -> None:
        self._process = process
        self._end = end

    @classmethod
    def started(cls, command: Sequence[str]) -> Self:
        """Start a program in a new process group, out of reach of Ctrl-C.

        Raises:
            OSError: The program cannot be started.
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
        """Write to the process's standard input.

        Raises:
            OSError: The process has ended.
        """
        await asyncio.get_running_loop().sock_sendall(self._end, data)

    async def receive(self, size: int) -> bytes:
        """Read exactly ``size`` bytes from the process's standard output.

        Raises:
            OSError, EOFError: The process has ended.
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
        """The operating system's id of the process."""
        return self._process.pid

    @property
    def is_gone(self) -> bool:
        """True if the process has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the process; a no-op after its end."""
        self._process.kill()

    async def gone(self) -> None:
        """Wait until the process has ended, and close the socket.

        No ``send`` or ``receive`` may be pending.
        """
        await asyncio.to_thread(self._process.wait)
        self._end.close()


LENGTH = struct.Struct(">I")
"""Length prefix of every job and response."""
MAX_WORKERS = 2
"""Most simultaneous pieces of work; further work waits."""
NICENESS, MOST_NICENESS = 10, 19
"""Workers get the processor time left by the server, which may be nice itself.

Peers decide the amount of work.
"""


class WorkerFailedError(Exception):
    """A worker process ended during its job, or could not be started."""


class WorkerProcess:
    """A worker process that does one job at a time.

    Attributes:
        called: The noun for such a process in error messages.
    """

    called = "worker"

    def __init__(self, process: ChildProcess) -> None:
        self._process = process
        self._idle = True

    @property
    def usable(self) -> bool:
        """True while the process runs and is idle, so that it can receive a job."""
        return self._idle and not self.is_gone

    @property
    def is_gone(self) -> bool:
        """True if the process has ended."""
        return self._process.is_gone

    async def ask(self, job: bytes) -> bytes:
        """Send a job to the process, and return its response.

        Raises:
            WorkerFailedError: The process has ended.
        """
        self._idle = False
        try:
            await self._process.send(job)
            del job  # An error's traceback would keep it, with this frame.
            size = LENGTH.unpack(await self._process.receive(LENGTH.size))[0]
            answer = await self._process.receive(size)
        except (OSError, EOFError) as error:
            raise WorkerFailedError(f"a {self.called} ended: {error}") from None
        self._idle = True
        return answer

    def end(self) -> None:
        """Kill the worker process; may be called repeatedly."""
        self._process.kill()

    async def gone(self) -> None:
        """Wait until the worker process has ended."""
        await self._process.gone()


Worker = TypeVar("Worker", bound=WorkerProcess)


class WorkerProcesses(Generic[Worker]):
    """A pool of worker processes, started on demand: ``async with WorkerProcesses(...)``.

    Bound: further work waits in order of request.

    Args:
        command: Program and arguments.
        made: Makes the worker of a process.
        max_workers: Most simultaneous processes.
    """

    def __init__(
        self, command: Sequence[str], made: type[Worker], max_workers: int = MAX_WORKERS
    ) -> None:
        self._command = command
        self._made = made
        self._places = asyncio.Semaphore(max_workers)
        self._waiting = 0
        self._spare: list[Worker] = []
        self._all: set[Worker] = set()
        self._ending = BackgroundTasks()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Kill all workers and wait until they have ended; may be called repeatedly."""
        workers, self._all, self._spare = self._all, set(), []
        for worker in workers:
            worker.end()
        # Meanwhile borrowers return their workers.
        for worker in tuple(workers):
            await worker.gone()
        await self._ending.finished()

    @property
    def wanted(self) -> bool:
        """True if a caller waits for a worker process."""
        return self._waiting > 0

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[Worker]:
        """Lend a worker process for a block; kill it at the end if its job is unfinished.

        Raises:
            WorkerFailedError: The process cannot be started.
        """
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            worker = self._spare.pop() if self._spare else self._started()
            if not worker.usable:
                self._take_back(worker)
                worker = self._started()
            try:
                yield worker
            finally:
                self._take_back(worker)
        finally:
            self._places.release()

    def _take_back(self, worker: Worker) -> None:
        if worker.usable:
            self._spare.append(worker)
        else:
            self._all.discard(worker)
            worker.end()
            self._ending.start(worker.gone())

    def _started(self) -> Worker:
        try:
            process = ChildProcess.started(self._command)
        except OSError as error:
            raise WorkerFailedError(f"no {self._made.called} can be started: {error}") from None
        _give_way(process.pid)
        worker = self._made(process)
        self._all.add(worker)
        return worker


def _give_way(pid: int) -> None:
    """Lower a worker process's priority below the server's."""
    with contextlib.suppress(OSError):
        own = max(os.getpriority(os.PRIO_PROCESS, 0), 0)
        os.setpriority(os.PRIO_PROCESS, pid, min(own + NICENESS, MOST_NICENESS))
