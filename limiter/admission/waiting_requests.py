"""The queue of a semaphore: waiting requests, their slots and deadlines."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock
    from limiter.permits.account import Waiter


class WaitingRequests:
    """Queue of requests in order of arrival, from which a policy may grant in another order.

    Attributes:
        requests: The requests, oldest first, with the permits each lacked on arrival.
        lacking_permits: Sum of the lacked permits.
        max_size: Largest number of waiting requests; 0 or less is unbounded.
        timeout_seconds: Default timeout of a new request; the policy may decide otherwise.
        more_seconds: Returns the seconds by which to extend a request's deadline; 0 or less for
            none.
    """

    __slots__ = (
        "_clock",
        "lacking_permits",
        "max_size",
        "more_seconds",
        "requests",
        "timeout_seconds",
    )

    def __init__(self, max_size: int, timeout_seconds: float, clock: Clock) -> None:
        self.requests: OrderedDict[Waiter, int] = OrderedDict()
        self.lacking_permits = 0
        self.max_size = max_size
        self.timeout_seconds = timeout_seconds
        self.more_seconds: Callable[[Waiter], float] | None = None
        self._clock = clock

    @property
    def full(self) -> bool:
        """True if there is no free slot for another request."""
        return 0 < self.max_size <= len(self.requests)

    def oldest(self) -> Waiter | None:
        """Return the oldest waiting request; None if no request waits."""
        return next(iter(self.requests), None)

    def waited_seconds(self, waiter: Waiter) -> float:
        """Return the seconds that a request has been waiting."""
        return self._clock.now() - waiter.enqueued_at

    def add(self, waiter: Waiter) -> None:
        """Append a request to the queue, and to the waiting requests of its connection."""
        waiter.enqueued_at = self._clock.now()
        self.requests[waiter] = lacking = waiter.needed
        self.lacking_permits += lacking
        if waiter.holder is not None:
            waiter.holder.waiters[waiter] = None

    def remove(self, waiter: Waiter) -> None:
        """Remove a request from the queue and from its holder."""
        self.lacking_permits -= self.requests.pop(waiter)
        if waiter.holder is not None:
            waiter.holder.waiters.pop(waiter, None)

    def limit_wait(
        self, waiter: Waiter, seconds: float, time_out: Callable[[Waiter], None]
    ) -> None:
        """Call ``time_out`` once a request has waited for ``seconds``."""
        waiter.timer = self._clock.call_at(waiter.enqueued_at + seconds, time_out, waiter)

    def extend_wait(self, waiter: Waiter, time_out: Callable[[Waiter], None]) -> bool:
        """Extend a request's deadline; return False if ``more_seconds`` grants no extension."""
        more = self.more_seconds(waiter) if self.more_seconds is not None else 0.0
        if more > 0:
            waiter.timer = self._clock.call_at(self._clock.now() + more, time_out, waiter)
        return more > 0
