"""Policy ``fifo``: first come, first served; growth waits at the tail like everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.admission.policy import Admission

if TYPE_CHECKING:
    from limiter.permits.account import Waiter


class FifoAdmission(Admission):
    """Strict order: the head holds up all behind it, and a stall lasts until a request times out.

    Source: upstream AsyncSemaphoreImpl, its one queue.
    """

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the head if it fits. One of 0 needs something to be free, too, as upstream."""
        return turn if 0 < available >= turn.needed else None
