"""Frees unneeded memory in small steps."""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

from server.tasks.cooperative import MOST_STEPS

if TYPE_CHECKING:
    from broker.messages.stores.memory_ledger import MemoryLedger

TURN_SECONDS = 0.002
"""Seconds spent freeing memory in one turn."""


class Disposal:
    """Frees ledgers block by block.

    Releasing a gigabyte in one step would block the event loop for a quarter of a second.
    """

    def __init__(self) -> None:
        self._waiting: deque[MemoryLedger] = deque()

    @property
    def is_done(self) -> bool:
        """True if no ledger waits to be freed."""
        return not self._waiting

    def free(self, ledger: MemoryLedger) -> None:
        """Free the entries of an unused ledger."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._take_turn)
        self._waiting.append(ledger)

    def _take_turn(self) -> None:
        end = perf_counter() + TURN_SECONDS
        for _ in range(MOST_STEPS):
            if not self._waiting[0].free_block():
                self._waiting.popleft()
            if not self._waiting or perf_counter() >= end:
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._take_turn)
