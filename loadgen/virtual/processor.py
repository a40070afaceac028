"""The processor of a simulated server, which does one piece of work after the other.

Virtual time stands still while Python runs, so each piece of work has a stated time: the code runs
at the beginning of that time, and sent bytes leave at the end.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from loadgen.documents.service_times import ServiceTimes
    from loadgen.virtual.loop import VirtualLoop


class Processor:
    """The processor of a simulated server.

    Mutable state: until when it is busy, and waiting work.

    Bound: at most one waiting piece of work for each direction of each connection.

    Attributes:
        times: The service times of the work.
        busy_until: When all charged work is done.
        spent_seconds: Sum of all charges.
    """

    __slots__ = ("_armed", "_loop", "_waiting", "busy_until", "spent_seconds", "times")

    def __init__(self, loop: VirtualLoop, times: ServiceTimes) -> None:
        self.times = times
        self.busy_until = 0.0
        self.spent_seconds = 0.0
        self._loop = loop
        self._waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._armed = False

    def charge(self, seconds: float) -> None:
        """Make the processor busy for ``seconds`` more.

        Bytes that are sent from now on leave when this time is over.
        """
        self.busy_until = self.done_at + seconds
        self.spent_seconds += seconds

    @property
    def done_at(self) -> float:
        """The time at which the processor is free, in virtual seconds."""
        now = self._loop._now
        return self.busy_until if self.busy_until > now else now

    def serve(self, work: Callable[..., object], *args: object) -> None:
        """Call a function as soon as the processor has done all earlier work."""
        self._waiting.append((work, args))
        if not self._armed:
            self._next()

    def _next(self) -> None:
        if self.busy_until > self._loop._now:
            self._armed = True
            self._loop.after(self.busy_until, self._next)
            return
        work, args = self._waiting.popleft()
        self._armed = more = bool(self._waiting)
        work(*args)
        if more:
            self._loop.after(self.busy_until, self._next)


class _Work(NamedTuple):
    """A piece of work that waits for a thread."""

    seconds: float
    done: asyncio.Future[None]


class Threads:
    """Threads of a simulated server besides its event loop, which do the oldest work first.

    Mutable state: busy threads, and waiting work. Bound: the requests of the process.

    Args:
        processor: Of the process; threads' time adds to ``spent_seconds``.
        count: Number of threads.
    """

    def __init__(self, processor: Processor, count: int = 1) -> None:
        self._processor = processor
        self._idle = count
        self._waiting: deque[_Work] = deque()

    async def work(self, seconds: float, wait: float = 0.0) -> None:
        """Occupy a thread for ``seconds``; return once the server's processor is free, too.

        Args:
            seconds: The thread's time.
            wait: A delay before, without use of a thread.
        """
        processor, loop = self._processor, self._processor._loop
        done: asyncio.Future[None] = loop.create_future()
        work = _Work(seconds, done)
        loop.after(processor.done_at + wait, self._add, work)
        await done

    def _add(self, work: _Work) -> None:
        self._waiting.append(work)
        self._begin()

    def _begin(self) -> None:
        loop = self._processor._loop
        while self._idle and self._waiting:
            work = self._waiting.popleft()
            self._idle -= 1
            self._processor.spent_seconds += work.seconds
            loop.after(loop._now + work.seconds, self._end, work)

    def _end(self, work: _Work) -> None:
        self._idle += 1
        self._processor.serve(finish, work.done)
        self._begin()


def finish(done: asyncio.Future[None]) -> None:
    """Complete a future, unless it was cancelled."""
    if not done.done():
        done.set_result(None)
