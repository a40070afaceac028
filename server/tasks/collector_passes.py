"""Short passes of Python's garbage collector: a full one looks at what is new, not at everything.

Left to itself it holds the event loop for as long as there are objects: 140 ms with 5,000
connections. Therefore what has outlived one full pass is left out of the next ones. Cycles among it
that become garbage stay, until much more is there than when all was last looked at.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OLDEST = 2
OLDER_THRESHOLDS = (2, 1)
"""See gc.set_threshold: a full pass comes when some 30,000 objects are new (server.loop says how
many bring the shortest pass), which take it 10 ms."""
LEAST_GROWTH = 1_000_000
"""Pieces of memory, some 100 MB, that may come before all is looked at again."""


class CollectorPasses:
    """Told of passes by gc.callbacks.

    Args:
        freeze: Leaves all that is there out of passes.
        unfreeze: Takes it in again.
        blocks: Returns how many pieces of memory Python has in use.
    """

    def __init__(
        self,
        freeze: Callable[[], object] = gc.freeze,
        unfreeze: Callable[[], object] = gc.unfreeze,
        blocks: Callable[[], int] = sys.getallocatedblocks,
    ) -> None:
        self._freeze = freeze
        self._unfreeze = unfreeze
        self._blocks = blocks
        self._bound = blocks() + LEAST_GROWTH
        self._all = False

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Learn that a pass begins or ends."""
        if phase != "stop" or info["generation"] != OLDEST:
            return
        blocks = self._blocks()
        if self._all:
            self._bound = blocks + max(blocks, LEAST_GROWTH)
        self._all = blocks > self._bound
        if self._all:
            self._unfreeze()
        else:
            self._freeze()


def keep_passes_short() -> None:
    """Have full passes of this process's collector look at what is new."""
    gc.set_threshold(gc.get_threshold()[0], *OLDER_THRESHOLDS)
    gc.callbacks.append(CollectorPasses())
