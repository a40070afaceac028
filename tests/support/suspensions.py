"""Cancels a coroutine at one of its waits."""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def cancelled_at(
    work: Coroutine[Any, Any, Any], number: int, *, as_it_ends: bool = False
) -> asyncio.Task[Any]:
    """Return a coroutine's task, cancelled at its n-th wait, from 1 on.

    Args:
        work: The coroutine.
        number: The interrupted wait; a higher number leaves the task alone.
        as_it_ends: Cancel in the turn in which the wait ends; default: as it begins.
    """
    waits = 0

    def waiting(waited: object) -> None:
        nonlocal waits
        waits += 1
        if waits != number:
            return
        if as_it_ends and isinstance(waited, asyncio.Future):
            # Before the task's own callback, which follows.
            waited.add_done_callback(lambda _: task.cancel())
        else:
            task.cancel()

    async def run() -> Any:
        return await _watched(work, waiting)

    task = asyncio.get_running_loop().create_task(run())
    return task


@types.coroutine
def _watched(
    work: Coroutine[Any, Any, T], waiting: Callable[[object], None]
) -> Generator[Any, Any, T]:
    """Run the coroutine and report each wait before it begins."""
    go_on: Callable[[Any], Any] = work.send
    value: Any = None
    while True:
        try:
            waited = go_on(value)
        except StopIteration as ended:
            result: T = ended.value
            return result
        waiting(waited)
        try:
            value, go_on = (yield waited), work.send
        except BaseException as error:  # noqa: BLE001 - it is the coroutine's
            value, go_on = error, work.throw
