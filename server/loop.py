"""Creation of a process's event loop: uvloop, or asyncio's if uvloop is not available."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ResultT = TypeVar("ResultT")

COLLECT_AFTER = 5_000
"""Objects created between two collections of the youngest generation.

With Python's default of 700, garbage collection takes a quarter of the cost of a change to 400
watched sets; with 20,000, garbage stays for long.
"""


def run(main: Coroutine[object, object, ResultT]) -> ResultT:
    """Run ``main`` on a new event loop and return its result.

    Garbage is collected less frequently from then on.
    """
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the function that creates uvloop's event loop; None for asyncio's event loop."""
    try:
        import uvloop
    except ImportError:  # no wheel for this platform
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
