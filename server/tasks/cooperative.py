"""Long work on the event loop, in steps of a few milliseconds."""

from __future__ import annotations

import asyncio
from collections import deque
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
    """Yield a sequence in parts of at most ``most`` items, for work in steps."""
    return (items[start : start + most] for start in range(0, len(items), most))


async def in_turns(items: Iterable[T], turn_seconds: float = TURN_SECONDS) -> AsyncIterator[T]:
    """Yield items, ending the turn whenever the work has taken 2 ms."""
    end, left = perf_counter() + turn_seconds, MOST_STEPS
    for item in items:
        yield item
        left -= 1
        if perf_counter() >= end or not left:
            await asyncio.sleep(0)
            end, left = perf_counter() + turn_seconds, MOST_STEPS


class Steps:
    """Does work in steps of about a millisecond.

    A single piece of work runs per turn, in order of request: however many are in progress, other
    connections wait for a single turn only.
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._turn = asyncio.Lock()
        self._turn_seconds = turn_seconds

    async def take(self, work: Generator[None, None, T]) -> T:
        """Run work that yields after each step; return its result."""
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


class ShortWork:
    """Does short pieces of work in order of request, as many per turn as take 2 ms.

    Bound: callers wait for the result, and are bounded elsewhere.
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._waiting: deque[tuple[asyncio.Future[object], Callable[[], object]]] = deque()
        self._turn_seconds = turn_seconds

    async def do(self, work: Callable[[], T]) -> T:
        """Call ``work`` in a turn and return its result; skipped if cancelled before."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._take_turn)
        self._waiting.append((done, work))  # type: ignore[arg-type]
        try:
            return await done
        finally:
            del done  # A raised error's traceback would keep the future, and through it the caller.

    def _take_turn(self) -> None:
        end = perf_counter() + self._turn_seconds
        for _ in range(min(len(self._waiting), MOST_STEPS)):
            done, work = self._waiting[0]
            if not done.cancelled():
                try:
                    done.set_result(work())
                except Exception as error:  # noqa: BLE001 - for whoever asked
                    done.set_exception(error)
            del done, work
            self._waiting.popleft()
            if perf_counter() >= end:
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._take_turn)
