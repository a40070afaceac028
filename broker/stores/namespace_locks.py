"""One at a time for each namespace or topic: what is done to it, and told of it, stays in order."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

Name = TypeVar("Name")
T = TypeVar("T")


class Turns(Generic[Name]):
    """Locks by name, each there only while somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[Name, asyncio.Lock] = {}
        self._users: dict[Name, int] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def __contains__(self, name: Name) -> bool:
        return name in self._locks

    @asynccontextmanager
    async def of(self, name: Name) -> AsyncIterator[None]:
        """Wait for a name's turn, and have it for the block."""
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
    """Wait for a change: who leaves must not part what is committed from what is shown."""
    return await asyncio.shield(asyncio.get_running_loop().create_task(work))
