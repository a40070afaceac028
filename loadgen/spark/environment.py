"""Context managers to keep Spark from changing the process's signal handling and logging."""

from __future__ import annotations

import logging
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from loadgen.workers import signals_taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def interrupts_deferred(at_once: Callable[[], object] | None = None) -> Iterator[list[int]]:
    """Hold back Ctrl-C during a ``with`` block that must not end half done.

    Yields a list, which grows by each deferred signal.

    ``at_once`` is called at a Ctrl-C, and may end a wait in the block.

    An interrupted launch of a JVM would leave behind a JVM without an end. At the end of the block
    the earlier signal handler is restored, even if the block has set another handler.
    """
    interrupts: list[int] = []

    def note(number: int, frame: object) -> None:
        interrupts.append(number)
        if at_once is not None:
            at_once()

    ignored = signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None)
    with signals_taken(signal.SIG_IGN if ignored else note, signal.SIGINT):
        yield interrupts


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer a Ctrl-C to the end of a short ``with`` block, such as a call to the JVM.

    Raises:
        KeyboardInterrupt: A Ctrl-C happened during the block; the block was completed first.
    """
    with interrupts_deferred() as interrupts:
        yield
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def bridge_silenced() -> Iterator[None]:
    """Suppress the stack traces logged by py4j when the connection to the JVM breaks.

    Some traces go to the root logger, and a root logger without another handler would print them.
    """
    bridge, root = logging.getLogger("py4j"), logging.getLogger()
    silence: list[logging.Handler] = [logging.NullHandler()]
    with (
        patch.multiple(bridge, handlers=silence, propagate=False),
        patch.object(root, "handlers", root.handlers + silence),
    ):
        yield
