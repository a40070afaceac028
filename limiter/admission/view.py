"""Read-only view of a semaphore for its admission policy, and a measurement of its grants."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.admission.caps import AdmissionCaps
    from limiter.admission.waiting_requests import WaitingRequests
    from limiter.clock import Clock
    from limiter.permits.account import Waiter
    from limiter.permits.accounts import Accounts
    from limiter.permits.permit import Budget


REMEMBERED_SECONDS = 5.0
"""The age at which a grant weighs a third (1/e) of a new grant."""


class DrainRate:
    """Permits granted per second to waiting requests, with more weight on recent grants.

    Time without a waiting request does not count.
    """

    __slots__ = ("_permits", "_seconds", "_since")

    def __init__(self) -> None:
        self._permits = self._seconds = 0.0
        self._since: float | None = None

    def begins(self, now: float) -> None:
        """Start counting time, as a request begins to wait."""
        if self._since is None:
            self._since = now

    def granted(self, permits: int, now: float) -> None:
        """Count permits granted to a waiting request."""
        self._permits, self._seconds = self._until(now)
        self._permits += permits
        self._since = now

    def ends(self, now: float) -> None:
        """Stop counting time: the last waiting request left."""
        self._permits, self._seconds = self._until(now)
        self._since = None

    def now(self, now: float) -> float | None:
        """Return the permits granted per second; None if no time passed since the first grant."""
        permits, seconds = self._until(now)
        return permits / seconds if permits and seconds else None

    def _until(self, now: float) -> tuple[float, float]:
        """Return permits granted and seconds waited until ``now``, with less weight on old ones."""
        passed = 0.0 if self._since is None else now - self._since
        kept = math.exp(-passed / REMEMBERED_SECONDS)
        return self._permits * kept, self._seconds * kept + passed


class BudgetView:
    """Read-only view of a semaphore for its admission policy.

    Units: permits (bytes), seconds.

    Attributes:
        budget: Limit and held permits: ``max_permits``, ``acquired``, ``available_permits``.
        queue: The waiting requests, their slots and timeouts.
        waiting: The waiting requests, oldest first, each with the permits that it lacked on
            arrival.
        accounts: Held and requested permits by owner.
        caps: The configured caps of a connection, namespace or tenant.
        clock: The source of time.
        drain: Measures from the first read of ``drain_rate`` on.
    """

    __slots__ = ("accounts", "budget", "caps", "clock", "drain", "queue", "waiting")

    def __init__(
        self,
        budget: Budget,
        queue: WaitingRequests,
        accounts: Accounts,
        caps: AdmissionCaps,
        clock: Clock,
    ) -> None:
        self.budget = budget
        self.accounts = accounts
        self.caps = caps
        self.clock = clock
        self.drain: DrainRate | None = None
        self.queue = queue
        self.waiting = MappingProxyType(queue.requests)

    @property
    def waiting_permits(self) -> int:
        """Sum of the permits that all waiting requests lack."""
        return self.queue.lacking_permits

    @property
    def timeout_seconds(self) -> float:
        """The configured seconds after which a waiting request is refused."""
        return self.queue.timeout_seconds

    @property
    def oldest_wait_seconds(self) -> float:
        """Seconds that the oldest request has been waiting; 0 with an empty queue."""
        oldest = self.queue.oldest()
        return 0.0 if oldest is None else self.waited_seconds(oldest)

    @property
    def drain_rate(self) -> float | None:
        """Permits per second granted to waiting requests; None before the first grant.

        Measured from the first read on, so that a policy that never reads it costs nothing.
        """
        now = self.clock.now()
        if self.drain is None:
            self.drain = DrainRate()
            if self.queue.requests:
                self.drain.begins(now)
        return self.drain.now(now)

    def waited_seconds(self, waiter: Waiter) -> float:
        """Return the seconds that a request has been waiting."""
        return self.queue.waited_seconds(waiter)
