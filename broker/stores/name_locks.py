"""Locks by name of a namespace or topic, which keep changes and their publication in order."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

logger = logging.getLogger(__name__)

Name = TypeVar("Name")
T = TypeVar("T")


class NameLocks(Generic[Name]):
    """A lock for each name, which exists only while it is held or awaited."""

    def __init__(self) -> None:
        self._locks: dict[Name, asyncio.Lock] = {}
        self._users: dict[Name, int] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def __contains__(self, name: Name) -> bool:
        return name in self._locks

    @asynccontextmanager
    async def of(self, name: Name) -> AsyncIterator[None]:
        """Hold the lock of a name during the ``with`` block."""
        lock = self._locks.setdefault(name, asyncio.Lock())
        self._users[name] = self._users.get(name, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._locks[name]


async def to_its_end(work: Coroutine[object, object, T]) -> T:
    """Await a coroutine that runs to its end even if the caller is cancelled.

    Used for a commit and its publication.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_ended_alone)
        raise


def _ended_alone(task: asyncio.Task[T]) -> None:
    """Log the error of a task whose caller was cancelled, and so cannot receive the error."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.info("the caller was cancelled before the error: %s", error)
