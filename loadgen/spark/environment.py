"""Blocks that keep, or put back, what Spark changes in the process around it."""

from __future__ import annotations

import logging
import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a block; what Spark sets in it goes too."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def interrupts_deferred(at_once: Callable[[], object] | None = None) -> Iterator[list[int]]:
    """Collect Ctrl-C for a block that must not be left half done.

    ``at_once`` is called when there is one: it may end what the block waits for.

    A launch that is interrupted would leave a JVM behind that nobody knows, and that does not end
    by itself. At the end the handler from before is back, whatever the block put in its place.
    """
    interrupts: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    handler = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: object) -> None:
        del frame
        interrupts.append(number)
        if at_once is not None:
            at_once()

    if handler not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a Ctrl-C wait until the end of a short block, such as a call to the JVM.

    Raises:
        KeyboardInterrupt: There was one; the block is complete.
    """
    with interrupts_deferred() as interrupts:
        yield
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def bridge_silenced() -> Iterator[None]:
    """Keep the stack traces that the bridge to the JVM logs when it is cut from the user.

    It logs some of them at the root logger, which prints them if nobody else takes them.
    """
    bridge, root = logging.getLogger("py4j"), logging.getLogger()
    propagated = bridge.propagate
    silence = logging.NullHandler()
    bridge.addHandler(silence)
    root.addHandler(silence)
    bridge.propagate = False
    try:
        yield
    finally:
        bridge.propagate = propagated
        bridge.removeHandler(silence)
        root.removeHandler(silence)
