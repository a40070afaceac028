"""Work of many callers that shares a turn's time budget."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TURN_SECONDS = 0.002
"""Time budget of a turn, after which connections and requests run."""
_NO_MORE = object()

MOST_STEPS = 10_000
"""Most calls of a turn, in case the clock stands still."""


class SharedTurns:
    """Runs due calls, as many per turn of the event loop as take 2 ms.

    For the dispatchers of a broker: otherwise a topic with a thousand subscriptions would delay all
    clients with each message. Bound: each dispatcher waits here at most once.
    """

    def __init__(self) -> None:
        self._due: deque[Callable[[], object]] = deque()
        self._turn_ends = 0.0
        self._is_in_turn = False

    def now(self, run: Callable[[], object]) -> bool:
        """Run a call immediately if this turn has time left and none waits; else return False."""
        if not self._is_in_turn:
            self._begin_turn()
        if self._due or perf_counter() >= self._turn_ends:
            return False
        run()
        return True

    def later(self, run: Callable[[], object]) -> None:
        """Run a call in a later turn, behind the waiting calls."""
        self._due.append(run)
        if not self._is_in_turn:
            self._begin_turn()

    def in_steps(self, steps: Iterator[None]) -> None:
        """Run long work in steps: a step now, the rest in later turns.

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
