"""The queue of a semaphore: requests that wait, places for them, and their deadlines."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock
    from limiter.permits.account import Waiter


class WaitingRequests:
    """Requests in the order in which they came; the admission policy may serve them in another.

    Attributes:
        requests: The requests, the oldest first, with what each lacked when it came.
        lacking_permits: The sum of that.
        max_size: Places for them; 0 or less is an unbounded queue.
        timeout_seconds: How long a request that comes now may wait, if the policy does not differ.
        more_seconds: Asked how much longer a request may wait that would time out now; 0 or
            less: not at all.
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
        """True if there is no place for another request."""
        return 0 < self.max_size <= len(self.requests)

    def oldest(self) -> Waiter | None:
        """Return the request that has waited for longest; None when nobody waits."""
        return next(iter(self.requests), None)

    def waited_seconds(self, waiter: Waiter) -> float:
        """Return how long a request has waited."""
        return self._clock.now() - waiter.enqueued_at

    def add(self, waiter: Waiter) -> None:
        """Let a request wait."""
        waiter.enqueued_at = self._clock.now()
        self.requests[waiter] = lacking = waiter.needed
        self.lacking_permits += lacking
        if waiter.holder is not None:
            waiter.holder.waiters[waiter] = None

    def remove(self, waiter: Waiter) -> None:
        """Take a request out of the queue and off its holder's list."""
        self.lacking_permits -= self.requests.pop(waiter)
        if waiter.holder is not None:
            waiter.holder.waiters.pop(waiter, None)

    def limit_wait(
        self, waiter: Waiter, seconds: float, time_out: Callable[[Waiter], None]
    ) -> None:
        """Call ``time_out`` when a request that begins to wait has done so for ``seconds``."""
        waiter.timer = self._clock.call_at(waiter.enqueued_at + seconds, time_out, waiter)

    def extend_wait(self, waiter: Waiter, time_out: Callable[[Waiter], None]) -> bool:
        """Give a request more time at its deadline; false when it gets none."""
        more = self.more_seconds(waiter) if self.more_seconds is not None else 0.0
        if more > 0:
            waiter.timer = self._clock.call_at(self._clock.now() + more, time_out, waiter)
        return more > 0
