"""The processor of one simulated process, which serves one piece of work after another.

Virtual time stands still while Python runs. So each piece of work has a stated time: the code runs
at the beginning of it, and what it sends leaves at its end.
"""

from __future__ import annotations

import itertools
from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from loadgen.documents.service_times import ServiceTimes
    from loadgen.virtual.loop import VirtualLoop


class Processor:
    """One process's processor. Mutable state: until when it is busy, and waiting work.

    Bound: every connection waits here once at most for each of its directions.

    Attributes:
        times: What its work takes.
        busy_until: When what was charged so far is done.
        spent_seconds: All that was charged.
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
        """Let work take its time; bytes sent from now on leave when the work is done."""
        self.busy_until = self.done_at + seconds
        self.spent_seconds += seconds

    @property
    def done_at(self) -> float:
        """The moment at which what was charged so far is done."""
        now = self._loop._now
        return self.busy_until if self.busy_until > now else now

    def serve(self, work: Callable[..., object], *args: object) -> None:
        """Do some work when what came before it is done."""
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
    """A piece of work for a thread."""

    number: int
    seconds: float
    done: asyncio.Future[None]
    alone: bool


class Threads:
    """Threads of one simulated process, which work beside its processor, in the order of requests.

    Mutable state: who works, and waiting work. Bound: as many as the process has requests.

    Args:
        processor: Of the process; what threads do is in its ``spent_seconds``.
        count: How many work at once.
    """

    def __init__(self, processor: Processor, count: int = 1) -> None:
        self._processor = processor
        self._idle = count
        self._alone_busy = False
        self._numbers = itertools.count()
        self._waiting: deque[_Work] = deque()
        self._waiting_alone: deque[_Work] = deque()

    async def work(self, seconds: float, wait: float = 0.0, *, alone: bool = False) -> None:
        """Have a thread do some work, and go on when the processor may.

        Args:
            seconds: What the thread needs.
            wait: What passes before, and takes nobody's time.
            alone: Whether no other such work may be under way meanwhile.
        """
        processor, loop = self._processor, self._processor._loop
        done: asyncio.Future[None] = loop.create_future()
        work = _Work(next(self._numbers), seconds, done, alone)
        loop.after(processor.done_at + wait, self._add, work)
        await done

    def _add(self, work: _Work) -> None:
        (self._waiting_alone if work.alone else self._waiting).append(work)
        self._begin()

    def _begin(self) -> None:
        loop = self._processor._loop
        while self._idle and (work := self._next()) is not None:
            self._idle -= 1
            self._alone_busy |= work.alone
            self._processor.spent_seconds += work.seconds
            loop.after(loop._now + work.seconds, self._end, work)

    def _next(self) -> _Work | None:
        """Take the oldest work that may begin."""
        queues = [self._waiting] if self._alone_busy else [self._waiting, self._waiting_alone]
        ready = [each for each in queues if each]
        return min(ready, key=itemgetter(0)).popleft() if ready else None

    def _end(self, work: _Work) -> None:
        self._idle += 1
        if work.alone:
            self._alone_busy = False
        self._processor.serve(finish, work.done)
        self._begin()


def finish(done: asyncio.Future[None]) -> None:
    """End a wait, unless it was given up."""
    if not done.done():
        done.set_result(None)
