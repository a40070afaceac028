"""Cancels a coroutine at a chosen suspension."""

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any


def cancelled_at(suspension: int, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Return a task cancelled at its n-th suspension, counted from 1."""

    async def whole() -> object:
        return await _counted(suspension, work, lambda: task.cancel())

    task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(whole())
    return task


@types.coroutine
def _counted(
    suspension: int, work: Coroutine[Any, Any, Any], cancel: Any
) -> Generator[Any, Any, Any]:
    steps = work.__await__()
    number = 0
    error: BaseException | None = None
    while True:
        try:
            waits_for = steps.send(None) if error is None else steps.throw(error)  # type: ignore[attr-defined]
        except StopIteration as stop:
            return stop.value
        number += 1
        if number == suspension:
            asyncio.get_running_loop().call_soon(cancel)
        error = None
        try:
            yield waits_for
        except BaseException as thrown:  # noqa: BLE001 - whatever it is, it is for the work
            error = thrown
