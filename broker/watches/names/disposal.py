"""Gradual freeing of large sets of names.

Freeing a million names in one step would block the event loop for 30 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.watches.names.nodes import children_of
from server.tasks.cooperative import Turns

if TYPE_CHECKING:
    from broker.watches.names.nodes import Node
    from broker.watches.names.sorted_names import SortedNames


class NamesDisposal:
    """Takes sets apart from the root, freeing unshared nodes one by one.

    The mutable state is the pending nodes.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._turns = Turns(self._free_one)

    def __len__(self) -> int:
        return len(self._nodes)

    def free(self, names: SortedNames) -> None:
        """Free an unused set, from the next event-loop iteration on."""
        if names.root is not None:
            self._nodes.append(names.root)
            self._turns.start()

    def _free_one(self) -> bool:
        self._nodes += children_of(self._nodes.pop())
        return bool(self._nodes)
