"""Keeps the log of simulated servers off the terminal: thousands of lines, one for each refusal."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def servers_silent() -> Iterator[None]:
    """Log nothing in this process while a block runs; afterwards what was logged before is again.

    Servers in virtual time log nowhere else, so nobody misses their lines.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
