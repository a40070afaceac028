"""Admission policy ``fifo``: first come, first served, also for requests to enlarge a permit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.admission.policy import Admission

if TYPE_CHECKING:
    from limiter.permits.account import Waiter


class FifoAdmission(Admission):
    """Admission policy in strict order of arrival: the oldest request blocks all others.

    A deadlock of growing permits lasts until a request times out.

    Source: upstream AsyncSemaphoreImpl, its single queue.
    """

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the oldest request if it fits, otherwise None.

        As upstream, even a request of size 0 needs a free permit.
        """
        return turn if 0 < available >= turn.needed else None
