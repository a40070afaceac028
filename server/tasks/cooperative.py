"""Long work on the event loop, in steps that block it for no more than about 2 ms."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence

T = TypeVar("T")

TURN_SECONDS = 0.002
"""Seconds of work in a turn."""
MOST_STEPS = 10_000
"""Most steps of a turn, in case the clock stands still."""
ITEMS_A_STEP = 1_000


def in_parts(items: Sequence[T], most: int = ITEMS_A_STEP) -> Iterator[Sequence[T]]:
    """Yield consecutive parts of a sequence, each of at most ``most`` items."""
    return (items[start : start + most] for start in range(0, len(items), most))


async def in_turns(items: Iterable[T], turn_seconds: float = TURN_SECONDS) -> AsyncIterator[T]:
    """Yield items, and let other tasks run whenever the items have taken 2 ms."""
    end, left = perf_counter() + turn_seconds, MOST_STEPS
    for item in items:
        yield item
        left -= 1
        if perf_counter() >= end or not left:
            await asyncio.sleep(0)
            end, left = perf_counter() + turn_seconds, MOST_STEPS


class Steps:
    """Runs long work in steps of about a millisecond; other tasks run in between.

    One piece of work runs per event-loop iteration, in order of request: however many are in
    progress, other connections wait only for that one.
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._turn = asyncio.Lock()
        self._turn_seconds = turn_seconds

    async def take(self, work: Generator[None, None, T]) -> T:
        """Run a generator that yields after each short step; return its result."""
        while True:
            async with self._turn:
                end = perf_counter() + self._turn_seconds
                try:
                    for _ in range(MOST_STEPS):
                        next(work)
                        if perf_counter() >= end:
                            break
                except StopIteration as done:
                    result: T = done.value
                    return result
                finally:
                    # Also after the last step: many short pieces of work would add up to a long
                    # turn.
                    await asyncio.sleep(0)


class Turns:
    """Repeats a short step, for about 2 ms per event-loop iteration, until nothing is left to do.

    Args:
        step: Does a step, and returns True if more is left to do. Must not raise.
    """

    def __init__(self, step: Callable[[], bool], turn_seconds: float = TURN_SECONDS) -> None:
        self._step = step
        self._turn_seconds = turn_seconds
        self._is_running = False

    def start(self) -> None:
        """Begin to repeat the step in the next event-loop iteration, unless already begun."""
        if not self._is_running:
            self._is_running = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        end = perf_counter() + self._turn_seconds
        for _ in range(MOST_STEPS):
            self._is_running = self._step()
            if not self._is_running:
                return
            if perf_counter() >= end:
                break
        asyncio.get_running_loop().call_soon(self._take_turn)


class ShortWork:
    """Makes short calls in order of request, as many per event-loop iteration as take 2 ms.

    Bound: callers wait for the result, and are bounded elsewhere.
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._waiting: deque[tuple[asyncio.Future[object], Callable[[], object]]] = deque()
        self._turns = Turns(self._do_next, turn_seconds)

    async def do(self, work: Callable[[], T]) -> T:
        """Call ``work`` in a later event-loop iteration, and return its result.

        The call is skipped if this task is cancelled before.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((done, work))  # type: ignore[arg-type]
        self._turns.start()
        try:
            return await done
        finally:
            del done  # A raised error's traceback would keep the future, and through it the caller.

    def _do_next(self) -> bool:
        done, work = self._waiting[0]
        if not done.cancelled():
            try:
                done.set_result(work())
            except Exception as error:  # noqa: BLE001 - for whoever asked
                done.set_exception(error)
        del done, work
        self._waiting.popleft()
        return bool(self._waiting)


_NO_MORE = object()


class SharedTurns:
    """Makes queued calls, as many per event-loop iteration as take 2 ms.

    Used by a broker's dispatchers: otherwise each message of a topic with a thousand subscriptions
    would delay all clients. Bound: each dispatcher waits here at most once.
    """

    def __init__(self) -> None:
        self._due: deque[Callable[[], object]] = deque()
        self._turn_ends = 0.0
        self._is_in_turn = False

    def now(self, run: Callable[[], object]) -> bool:
        """Make a call at once if this event-loop iteration has time left and no other call waits.

        Returns False if the call was not made.
        """
        if not self._is_in_turn:
            self._begin_turn()
        if self._due or perf_counter() >= self._turn_ends:
            return False
        run()
        return True

    def later(self, run: Callable[[], object]) -> None:
        """Queue a call, made in a later event-loop iteration after the calls already queued."""
        self._due.append(run)
        if not self._is_in_turn:
            self._begin_turn()

    def in_steps(self, steps: Iterator[None]) -> None:
        """Do one step of long work now, and the further steps in later event-loop iterations.

        Args:
            steps: A finite number of short steps.
        """
        if next(steps, _NO_MORE) is not _NO_MORE:
            self.later(partial(self.in_steps, steps))

    def _begin_turn(self) -> None:
        self._is_in_turn = True
        self._turn_ends = perf_counter() + TURN_SECONDS
        asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_in_turn = False
        if not self._due:
            return
        self._begin_turn()
        for _ in range(MOST_STEPS):
            self._due.popleft()()
            if not self._due or perf_counter() >= self._turn_ends:
                break
