"""Gradual freeing of large sets of names.

Freeing a million names in one step would block the event loop for 30 ms.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING

from broker.watches.names.nodes import children_of
from server.tasks.cooperative import MOST_STEPS, TURN_SECONDS

if TYPE_CHECKING:
    from broker.watches.names.nodes import Node
    from broker.watches.names.sorted_names import SortedNames


class NamesDisposal:
    """Takes sets apart from the root, freeing unshared nodes one by one.

    The mutable state is the pending nodes.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def free(self, names: SortedNames) -> None:
        """Free an unused set, from the next event-loop iteration on."""
        if names.root is None:
            return
        if not self._nodes:
            asyncio.get_running_loop().call_soon(self._take_turn)
        self._nodes.append(names.root)

    def _take_turn(self) -> None:
        end = perf_counter() + TURN_SECONDS
        for _ in range(MOST_STEPS):
            self._nodes += children_of(self._nodes.pop())
            if not self._nodes or perf_counter() >= end:
                break
        if self._nodes:
            asyncio.get_running_loop().call_soon(self._take_turn)
