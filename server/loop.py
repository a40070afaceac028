"""Runs a process's main coroutine on uvloop, or on asyncio where uvloop is not available."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ResultT = TypeVar("ResultT")


def run(main: Coroutine[object, object, ResultT]) -> ResultT:
    """Run ``main`` to its end on a new event loop and return its result."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop, or None for asyncio's own."""
    try:
        import uvloop
    except ImportError:  # no wheel for this platform
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
