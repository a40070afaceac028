"""Policy ``fifo``: first come, first served; growth waits at the tail as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.admission.policy import Admission

if TYPE_CHECKING:
    from limiter.permits.account import Waiter


class FifoAdmission(Admission):
    """Strict order: the head blocks the queue, and a stall lasts until a request times out.

    Source: upstream AsyncSemaphoreImpl, its single queue.
    """

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the head if it fits; as upstream, a size of 0 needs a free permit as well."""
        return turn if 0 < available >= turn.needed else None
