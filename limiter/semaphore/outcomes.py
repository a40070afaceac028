"""Reports to the observers of a semaphore: outcomes and waits of requests, contention."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from limiter.permits.permit import AcquireOutcome, Contention

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from limiter.admission.policy import Admission
    from limiter.admission.waiting_requests import WaitingRequests
    from limiter.permits.account import Waiter
    from limiter.permits.permit import Budget

MOST_LABELS = 20
"""Refusal labels counted separately; further labels count as ``other``."""


class Outcomes:
    """Reports of each request's outcome to an observer; requests without a wait go in batches.

    Attributes:
        untold_grants: Requests granted without a wait since the last report.
        refused: Requests refused by the policy, by the label of its reason.
    """

    __slots__ = ("_observer", "refused", "untold_grants")

    def __init__(self, observer: Callable[[AcquireOutcome, float, int], None] | None) -> None:
        self._observer = observer
        self.untold_grants = 0
        self.refused: Counter[str] = Counter()

    def count_reason(self, label: str) -> None:
        """Count a policy's refusal by reason; its outcome is reported separately."""
        known = label in self.refused or len(self.refused) < MOST_LABELS
        self.refused[label if known else "other"] += 1

    def tell(self, outcome: AcquireOutcome, waited_seconds: float = 0.0) -> None:
        """Report the outcome of a request to the observer."""
        self.tell_grants()
        if self._observer is not None:
            self._observer(outcome, waited_seconds, 1)

    def tell_grants(self) -> None:
        """Report all requests granted without a wait to the observer, as one batch."""
        count, self.untold_grants = self.untold_grants, 0
        if count and self._observer is not None:
            self._observer(AcquireOutcome.GRANTED, 0.0, count)


class ContentionWatch:
    """Watch for the request that is next but waits for permits of other owners."""

    __slots__ = ("_admission", "_budget", "_callback", "_told", "_waiting")

    def __init__(self, budget: Budget, waiting: WaitingRequests, admission: Admission) -> None:
        self._budget = budget
        self._waiting = waiting
        self._admission = admission
        self._callback: Callable[[Contention], None] | None = None
        self._told: Waiter | None = None

    def current(self) -> Contention | None:
        """Return the request that waits for permits of other owners; None without contention."""
        turn = self._turn()
        return None if turn is None else self._of(turn)

    def others_wait(self, owner: Hashable) -> bool:
        """Return True if any owner other than ``owner`` has a waiting request.

        Under fifo such a request may wait behind the owner's own request.
        """
        return any(
            (one.owner if one.account is None else one.account.owner) is not owner
            for one in self._waiting.requests
        )

    def on_change(self, callback: Callable[[Contention], None]) -> None:
        """Set the callback for when another request becomes next and has to wait."""
        self._callback = callback

    def check(self) -> None:
        """Run the callback if another request became next; called by the semaphore."""
        if self._callback is None:
            return
        turn = self._turn()
        told, self._told = self._told, turn
        if turn is not None and turn is not told:
            self._callback(self._of(turn))

    def _turn(self) -> Waiter | None:
        return self._admission.turn() if self._waiting.requests else None

    def _of(self, turn: Waiter) -> Contention:
        owner = turn.account.owner if turn.account is not None else turn.owner
        available = self._budget.max_permits - self._budget.acquired
        waited_seconds = self._waiting.waited_seconds(turn)
        return Contention(owner, turn.namespace, turn.needed, available, waited_seconds)
