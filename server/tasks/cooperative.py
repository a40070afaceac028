"""Long work on the event loop, a few milliseconds at a time."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

T = TypeVar("T")

TURN_SECONDS = 0.002
"""Seconds for which work goes on before other connections have their turn."""


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
                    next(work)
                    while perf_counter() < end:
                        next(work)
                except StopIteration as done:
                    result: T = done.value
                    return result
                finally:
                    # Also behind the last step: short pieces of work would make one long turn.
                    await asyncio.sleep(0)
