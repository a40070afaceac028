"""Long work on the event loop, split into steps so that no turn lasts more than about 2 ms."""

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
    """Yield items, letting other tasks run whenever 2 ms have passed."""
    end, left = perf_counter() + turn_seconds, MOST_STEPS
    for item in items:
        yield item
        left -= 1
        if perf_counter() >= end or not left:
            await asyncio.sleep(0)
            end, left = perf_counter() + turn_seconds, MOST_STEPS


class Steps:
    """Runs long work in steps of about a millisecond; other tasks run in between.

    A single piece of work runs per turn, in order of request: however many are in progress, other
    connections wait for a single turn only.
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._turn = asyncio.Lock()
        self._turn_seconds = turn_seconds

    async def take(self, work: Generator[None, None, T]) -> T:
        """Run a generator, which yields after each short step, and return the result."""
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
    """Repeats a short step, for about 2 ms of each turn, until the step has nothing left to do.

    Args:
        step: Does a step, and returns True if more is left to do. Must not raise.
    """

    def __init__(self, step: Callable[[], bool], turn_seconds: float = TURN_SECONDS) -> None:
        self._step = step
        self._turn_seconds = turn_seconds
        self._is_running = False

    def start(self) -> None:
        """Begin to repeat the step in the next turn, unless it is being repeated already."""
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
    """Makes short calls in order of request, as many in each turn as take 2 ms.

    Bound: callers wait for the result, and are bounded elsewhere.
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._waiting: deque[tuple[asyncio.Future[object], Callable[[], object]]] = deque()
        self._turns = Turns(self._do_next, turn_seconds)

    async def do(self, work: Callable[[], T]) -> T:
        """Call ``work`` in a later turn, and return the result.

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


"""Time budget of a turn, after which connections and requests run."""
_NO_MORE = object()

"""Most calls of a turn, in case the clock stands still."""


class SharedTurns:
    """Makes due calls, as many in each turn of the event loop as take 2 ms.

    For the dispatchers of a broker: otherwise a topic with a thousand subscriptions would delay all
    clients with each message. Bound: each dispatcher waits here at most once.
    """

    def __init__(self) -> None:
        self._due: deque[Callable[[], object]] = deque()
        self._turn_ends = 0.0
        self._is_in_turn = False

    def now(self, run: Callable[[], object]) -> bool:
        """Make a call immediately if the turn has time left and no call waits.

        Returns False if the call was not made.
        """
        if not self._is_in_turn:
            self._begin_turn()
        if self._due or perf_counter() >= self._turn_ends:
            return False
        run()
        return True

    def later(self, run: Callable[[], object]) -> None:
        """Make a call in a later turn, after the calls already waiting."""
        self._due.append(run)
        if not self._is_in_turn:
            self._begin_turn()

    def in_steps(self, steps: Iterator[None]) -> None:
        """Run long work in steps: a step now, the further steps in later turns.

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
