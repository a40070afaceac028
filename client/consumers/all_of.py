"""Concurrent coroutines with a common end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable


T = TypeVar("T")


async def all_of(parts: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently to their ends, then raise the first error.

    Cancellation cancels all of the coroutines, and waits for their ends.
    """
    coroutines = list(parts)
    if len(coroutines) == 1:
        return [await coroutines[0]]
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(one) for one in coroutines]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
    errors = [task.exception() for task in tasks if not task.cancelled()]
    for error in errors:
        if error is not None:
            raise error
    return [task.result() for task in tasks if not task.cancelled()]


async def ended(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task (None: a no-op), and wait for its end."""
    if task is not None and task is not asyncio.current_task():
        task.cancel()
        await asyncio.wait([task])
