import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")
TURNS = 20


async def settle() -> None:
    """Return when every runnable task has suspended."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def started(work: Coroutine[object, object, T]) -> asyncio.Task[T]:
    """Return a task that has run to its first suspension."""
    task = asyncio.get_running_loop().create_task(work)
    await settle()
    return task
