"""The view of a budget that an admission policy decides by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.admission.drain_rate import DrainRate

if TYPE_CHECKING:
    from collections import OrderedDict

    from limiter.admission.caps import AdmissionCaps
    from limiter.admission.waiting_requests import WaitingRequests
    from limiter.clock import Clock
    from limiter.permits.account import Waiter
    from limiter.permits.accounts import Accounts
    from limiter.permits.permit import Budget


class BudgetView:
    """Shows one budget to its policy, which only reads it. Units: permits (bytes), seconds.

    Attributes:
        budget: What is limited and held: ``max_permits``, ``acquired``, ``available_permits``.
        queue: The requests that wait: places, timeouts, and ``waiting``.
        accounts: Who holds and waits for how much.
        caps: What one connection, namespace or tenant may hold, as configured.
        clock: The source of time.
        drain: Measures once a policy has asked for ``drain_rate``.
    """

    __slots__ = ("accounts", "budget", "caps", "clock", "drain", "queue")

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

    @property
    def waiting(self) -> OrderedDict[Waiter, int]:
        """The requests that wait, the oldest first, with what each lacked when it came."""
        return self.queue.requests

    @property
    def waiting_permits(self) -> int:
        """Permits that all waiting requests lack together."""
        return self.queue.lacking_permits

    @property
    def timeout_seconds(self) -> float:
        """The configured time after which a waiting request is refused."""
        return self.queue.timeout_seconds

    @property
    def oldest_wait_seconds(self) -> float:
        """Age of the oldest waiting request; 0 when none waits."""
        oldest = self.queue.oldest()
        return 0.0 if oldest is None else self.waited_seconds(oldest)

    @property
    def drain_rate(self) -> float | None:
        """Permits a second granted to waiting requests; None before the first grant.

        Measured from the first read on: a policy that never reads it costs nothing.
        """
        now = self.clock.now()
        if self.drain is None:
            self.drain = DrainRate()
            if self.queue.requests:
                self.drain.begins(now)
        return self.drain.now(now)

    def waited_seconds(self, waiter: Waiter) -> float:
        """Return how long a request has waited."""
        return self.queue.waited_seconds(waiter)
