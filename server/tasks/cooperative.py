"""Long work on the event loop, a few milliseconds at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence

T = TypeVar("T")

TURN_SECONDS = 0.002
"""Seconds for which work goes on before other connections have their turn."""
MOST_STEPS = 10_000
"""Most steps of a turn, should the clock not move."""
ITEMS_A_STEP = 1_000


def in_parts(items: Sequence[T], most: int = ITEMS_A_STEP) -> Iterator[Sequence[T]]:
    """Yield a sequence in parts of so many items at most: each is a step of work with all."""
    return (items[start : start + most] for start in range(0, len(items), most))


async def in_turns(items: Iterable[T], turn_seconds: float = TURN_SECONDS) -> AsyncIterator[T]:
    """Yield items, with a turn for others whenever the work on some has taken 2 ms."""
    end, left = perf_counter() + turn_seconds, MOST_STEPS
    for item in items:
        yield item
        left -= 1
        if perf_counter() >= end or not left:
            await asyncio.sleep(0)
            end, left = perf_counter() + turn_seconds, MOST_STEPS


class Steps:
    """Does work in steps of about a millisecond.

    One piece of work has a turn at a time, in the order of asking: however many are under way,
    other connections wait for one turn only.
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._turn = asyncio.Lock()
        self._turn_seconds = turn_seconds

    async def take(self, work: Generator[None, None, T]) -> T:
        """Do all of some work, which yields after each step; return what it returns."""
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
                    # Also behind the last step: short pieces of work would make one long turn.
                    await asyncio.sleep(0)


class ShortWork:
    """Does pieces of short work in the order of asking, as many in a turn as take 2 ms.

    Bound: whoever asks waits for the answer, and has a bound of its own.
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._waiting: deque[tuple[asyncio.Future[object], Callable[[], object]]] = deque()
        self._turn_seconds = turn_seconds

    async def do(self, work: Callable[[], T]) -> T:
        """Call some work in its turn and return what it returns; not if this is cancelled."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._take_turn)
        self._waiting.append((done, work))  # type: ignore[arg-type]
        try:
            return await done
        finally:
            del done  # What it raises would be kept by its own traceback, with who asked.

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
