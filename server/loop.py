"""The event loop of a process: uvloop, or asyncio's where uvloop is not available."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ResultT = TypeVar("ResultT")

COLLECT_AFTER = 5_000
"""Objects that are made between two looks of the garbage collector at the newest.

With Python's 700 a quarter of what a change of 400 watched sets costs goes into looks at what is
not garbage; with 20,000 what is garbage stays for long.
"""


def run(main: Coroutine[object, object, ResultT]) -> ResultT:
    """Run ``main`` to its end on a new event loop and return its result.

    The process collects garbage more seldom from then on.
    """
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
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
