"""Work of many that shares what one turn of the event loop may take."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TURN_SECONDS = 0.002
"""After so long, connections and requests have their turn, and then the next that are due."""
_NO_MORE = object()

MOST_STEPS = 10_000
"""Most that run in a turn, should the clock not move."""


class SharedTurns:
    """Runs what is due, as much in a turn of the event loop as takes 2 ms.

    For the dispatchers of a broker: without it a topic with a thousand subscriptions would hold up
    everybody with each message. Bound: each waits here once at most, and what each lets go once.
    """

    def __init__(self) -> None:
        self._due: deque[Callable[[], object]] = deque()
        self._turn_ends = 0.0
        self._is_in_turn = False

    def now(self, run: Callable[[], object]) -> bool:
        """Run it at once if this turn has time left and nobody waits; else return false."""
        if not self._is_in_turn:
            self._begin_turn()
        if self._due or perf_counter() >= self._turn_ends:
            return False
        run()
        return True

    def later(self, run: Callable[[], object]) -> None:
        """Run it in one of the next turns, behind those that wait."""
        self._due.append(run)
        if not self._is_in_turn:
            self._begin_turn()

    def in_steps(self, steps: Iterator[None]) -> None:
        """Do work that would take too long at once: a step now, the others when it is their turn.

        Args:
            steps: Each is short, and they have an end.
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
