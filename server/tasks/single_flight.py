"""Work that is done once for all who ask for the same while it is under way."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Work under way, found by what it is for.

    Who leaves takes nothing from the others; the last who leaves ends the work. What it raises is
    raised by all who waited, and not kept.

    Bound: everybody who waits holds a place of the lookup semaphore.

    Source: upstream NamespaceService.inProgressQueryUserTopics.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def stop(self) -> None:
        """End all work that is under way."""
        for flight in self._flights.values():
            flight.task.cancel()

    async def join(self, key: Hashable, work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Return what the work for ``key`` returns; it is started if it is not under way."""
        flight = self._flights.get(key)
        # What has ended is not given again: it would be given at once, and again at once.
        if flight is None or flight.task.done():
            flight = self._flights[key] = _Flight(work())
            flight.task.add_done_callback(partial(self._ended, key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                self._close_door(key, flight)
                flight.task.cancel()
            del flight  # What it raised would be kept by its own traceback, with who asked.

    def _ended(self, key: Hashable, flight: _Flight[T], task: asyncio.Task[T]) -> None:
        self._close_door(key, flight)
        if not task.cancelled():
            task.exception()  # told to those who waited, if any were left

    def _close_door(self, key: Hashable, flight: _Flight[T]) -> None:
        """Let nobody join work that has ended, or that nobody waits for."""
        if self._flights.get(key) is flight:
            del self._flights[key]


class _Flight(Generic[T]):
    __slots__ = ("task", "waiting")

    def __init__(self, work: Coroutine[object, object, T]) -> None:
        self.task = asyncio.get_running_loop().create_task(work)
        self.waiting = 0
