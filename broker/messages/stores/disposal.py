"""Frees what is no longer needed a little at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

SLICE_ITEMS = 5_000
"""Items of a list that are freed in one turn of the event loop: about a millisecond."""


class Disposal:
    """Frees long lists in slices, one a turn of the event loop.

    To let go of a million objects at once would hold the loop for a tenth of a second.
    """

    def __init__(self) -> None:
        self._waiting: deque[list[Any]] = deque()

    @property
    def is_done(self) -> bool:
        """True if nothing waits to be freed."""
        return not self._waiting

    def free(self, items: list[Any]) -> None:
        """Free a list that nobody else uses."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._free_slice)
        self._waiting.append(items)

    def _free_slice(self) -> None:
        items = self._waiting[0]
        del items[-SLICE_ITEMS:]
        if not items:
            self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._free_slice)
