"""Lifecycle of a server process: signals, and the ready line on standard output.

The first SIGTERM or SIGINT requests a drain; the second ends the process immediately, with the exit
status that a shell reports for a killed process (143, 130).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from server.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DRAIN_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SignalSwitch:
    """Begins a drain (graceful shutdown) at the first signal, and ends the process at the second.

    Args:
        end_process: Called with the exit status at the second signal.

    Attributes:
        drain: Set by the first signal.
    """

    def __init__(self, end_process: Callable[[int], object] = os._exit) -> None:
        self.drain = asyncio.Event()
        self._end_process = end_process

    def on_signal(self, number: int) -> None:
        """Begin a drain (graceful shutdown); if one has begun already, end the process."""
        if self.drain.is_set():
            self._end_process(128 + number)
        self.drain.set()


@contextmanager
def drain_on_signals(switch: SignalSwitch | None = None) -> Iterator[asyncio.Event]:
    """While the ``with`` block runs, let SIGTERM and SIGINT set the yielded event.

    Yields:
        The event set by the first signal.
    """
    switch = switch or SignalSwitch()
    loop = asyncio.get_running_loop()
    for number in DRAIN_SIGNALS:
        loop.add_signal_handler(number, switch.on_signal, int(number))
    try:
        yield switch.drain
    finally:
        for number in DRAIN_SIGNALS:
            loop.remove_signal_handler(number)


def ready_line(role: str, *urls: str, output: TextIO | None = None) -> None:
    """Print the line which announces that the server accepts clients.

    Raises:
        StartError: Standard output is closed.
    """
    stream = output or sys.stdout
    try:
        stream.write(" ".join(("READY", role, *urls)) + "\n")
        stream.flush()
    except OSError as error:
        raise StartError(f"the ready line cannot be written: {error.strerror}") from None
