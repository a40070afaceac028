"""Frees unneeded memory in small steps."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from server.tasks.cooperative import Turns

if TYPE_CHECKING:
    from broker.messages.stores.memory_ledger import MemoryLedger


class Disposal:
    """Frees ledgers block by block.

    Releasing a gigabyte in one step would block the event loop for a quarter of a second.
    """

    def __init__(self) -> None:
        self._waiting: deque[MemoryLedger] = deque()
        self._turns = Turns(self._free_block)

    @property
    def is_done(self) -> bool:
        """True if no ledger waits to be freed."""
        return not self._waiting

    def free(self, ledger: MemoryLedger) -> None:
        """Free the entries of an unused ledger."""
        self._waiting.append(ledger)
        self._turns.start()

    def _free_block(self) -> bool:
        if not self._waiting[0].free_block():
            self._waiting.popleft()
        return bool(self._waiting)
