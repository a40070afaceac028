"""Speeds up asyncio's loops: with ``HURRY=20 make test`` a second takes 50 ms.

A wait for a real second then meets a machine busy for the other nineteen. Processes and loops other
than asyncio's keep real time.
"""

import os
import time
from asyncio import base_events, selector_events


def hurry(factor: float) -> None:
    """Speed up all new loops and the leases' clock by a factor."""
    loop_time, make_loop = base_events.BaseEventLoop.time, selector_events.BaseSelectorEventLoop
    init, clock_gettime = make_loop.__init__, time.clock_gettime

    def hurried_init(loop, selector=None):  # type: ignore[no-untyped-def]
        init(loop, selector)
        select = loop._selector.select
        loop._selector.select = lambda seconds=None: select(seconds and seconds / factor)

    make_loop.__init__ = hurried_init  # type: ignore[method-assign]
    base_events.BaseEventLoop.time = lambda loop: loop_time(loop) * factor  # type: ignore[method-assign]
    time.clock_gettime = lambda clock: clock_gettime(clock) * factor


if "HURRY" in os.environ:
    hurry(float(os.environ["HURRY"]))
