"""One at a time for each namespace: what is done to it, and told of it, stays in order."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from proto.names import NamespaceName

T = TypeVar("T")


class Turns:
    """Locks by namespace, each there only while somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[NamespaceName, asyncio.Lock] = {}
        self._users: dict[NamespaceName, int] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def __contains__(self, namespace: NamespaceName) -> bool:
        return namespace in self._locks

    @asynccontextmanager
    async def of(self, namespace: NamespaceName) -> AsyncIterator[None]:
        """Wait for a namespace's turn, and have it for the block."""
        lock = self._locks.setdefault(namespace, asyncio.Lock())
        self._users[namespace] = self._users.get(namespace, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[namespace] -= 1
            if not self._users[namespace]:
                del self._users[namespace], self._locks[namespace]


async def to_its_end(work: Coroutine[object, object, T]) -> T:
    """Wait for a change: who leaves must not part what is committed from what is shown."""
    return await asyncio.shield(asyncio.get_running_loop().create_task(work))
