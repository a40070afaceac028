"""Singleflight: work shared by all concurrent callers with the same key."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Work in progress by key, shared by concurrent callers with the same key.

    A caller that leaves does not affect the rest; the last caller that leaves cancels the work. An
    error is raised to all waiting callers, and not cached.

    Bound: at most one piece of work for each caller, or with ``finishes`` for each key.

    Args:
        places: Limit of concurrent work, possibly shared with other kinds of work.
        finishes: True if the work runs to its end, although all callers have left.

    Source: upstream NamespaceService.inProgressQueryUserTopics.
    """

    def __init__(self, places: asyncio.Semaphore | None = None, *, finishes: bool = False) -> None:
        self._places = places
        self._finishes = finishes
        self._flights: dict[Hashable, _Flight[T]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def stop(self) -> None:
        """Cancel all work in progress."""
        for flight in self._flights.values():
            flight.task.cancel()

    async def join(self, key: Hashable, work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Return the result of the work for ``key``, starting the work if it is not in progress."""
        flight = self._flights.get(key)
        # A finished result is not reused, as it would be reused without end.
        if flight is None or flight.task.done():
            begun = work() if self._places is None else _in_place(self._places, work)
            flight = self._flights[key] = _Flight(begun)
            flight.task.add_done_callback(partial(self._ended, key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not self._finishes:
                self._close_door(key, flight)
                flight.task.cancel()
            del flight  # A raised error's traceback would keep the flight and the caller.

    def _ended(self, key: Hashable, flight: _Flight[T], task: asyncio.Task[T]) -> None:
        self._close_door(key, flight)
        if not task.cancelled():
            task.exception()  # raised to the waiting callers, if any were left

    def _close_door(self, key: Hashable, flight: _Flight[T]) -> None:
        """Stop new callers from joining work that has ended or that no caller waits for."""
        if self._flights.get(key) is flight:
            del self._flights[key]


async def _in_place(
    places: asyncio.Semaphore, work: Callable[[], Coroutine[object, object, T]]
) -> T:
    async with places:
        return await work()


class _Flight(Generic[T]):
    __slots__ = ("task", "waiting")

    def __init__(self, work: Coroutine[object, object, T]) -> None:
        self.task = asyncio.get_running_loop().create_task(work)
        self.waiting = 0
