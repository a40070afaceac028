"""Work outside the main thread: worker processes, and threads with their own event loop.

Only the driver process decides when worker processes end; if the driver is killed, they end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any

from loadgen.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator


def follow_driver() -> None:
    """Make this worker process ignore Ctrl-C, and end when the driver process ends.

    A terminal sends Ctrl-C to all processes, of which only the driver should react.

    If the workers of a killed driver wrote on, their files would obstruct the next driver.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_driver, daemon=True).start()


def end_with_driver() -> None:
    """Wait until the driver process has ended, and then end this worker process immediately."""
    driver = parent_process()
    assert driver is not None
    driver.join()
    os._exit(ExitCode.INTERRUPTED)


@contextmanager
def signals_taken(
    handler: Callable[[int, object], None] | signal.Handlers, *numbers: signal.Signals
) -> Iterator[None]:
    """Handle signals with a given function during a ``with`` block, if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, handled in zip(numbers, before, strict=True):
            signal.signal(number, handled)


@contextmanager
def in_thread(
    name: str,
    work: Coroutine[Any, Any, None],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> Iterator[asyncio.AbstractEventLoop]:
    """Run a coroutine in a new thread during a ``with`` block; yield that thread's event loop.

    At the end of the block the coroutine and the tasks that it started are cancelled.
    """
    runner = asyncio.Runner(loop_factory=loop_factory)
    loop = runner.get_loop()
    working = loop.create_task(work)

    def run() -> None:
        with runner, suppress(asyncio.CancelledError):
            loop.run_until_complete(working)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(working.cancel)
        thread.join()
