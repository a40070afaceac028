"""What Spark changes in the process around it, kept or put back for the length of a block."""

from __future__ import annotations

import logging
import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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
def interrupt_handler_kept() -> Iterator[None]:
    """Put back the handler of Ctrl-C, which Spark replaces by one that outlives the session."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def interrupts_deferred() -> Iterator[list[int]]:
    """Collect Ctrl-C for a block that must not be left half done.

    A launch that is interrupted would leave a JVM behind that nobody knows, and that does not end
    by itself.
    """
    interrupts: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    handler = signal.getsignal(signal.SIGINT)
    if handler not in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def bridge_silenced() -> Iterator[None]:
    """Keep the stack traces that the bridge to the JVM logs on Ctrl-C from the user."""
    bridge = logging.getLogger("py4j")
    propagated = bridge.propagate
    silence = logging.NullHandler()
    bridge.addHandler(silence)
    bridge.propagate = False
    try:
        yield
    finally:
        bridge.propagate = propagated
        bridge.removeHandler(silence)
