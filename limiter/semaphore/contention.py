"""Contention for a semaphore: the request whose turn it is, and that has to wait for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.permits.permit import Contention

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from limiter.admission.policy import Admission
    from limiter.admission.waiting_requests import WaitingRequests
    from limiter.permits.account import Waiter
    from limiter.permits.permit import Budget


class ContentionWatch:
    """Says which request waits for permits of others, and calls back when another one does."""

    __slots__ = ("_admission", "_budget", "_callback", "_told", "_waiting")

    def __init__(self, budget: Budget, waiting: WaitingRequests, admission: Admission) -> None:
        self._budget = budget
        self._waiting = waiting
        self._admission = admission
        self._callback: Callable[[Contention], None] | None = None
        self._told: Waiter | None = None

    def current(self) -> Contention | None:
        """Return which request waits for permits of others; None when none does."""
        turn = self._turn()
        return None if turn is None else self._of(turn)

    def others_wait(self, owner: Hashable) -> bool:
        """Return True if anybody but ``owner`` waits: under fifo also behind its own request."""
        return any(
            (one.owner if one.account is None else one.account.owner) is not owner
            for one in self._waiting.requests
        )

    def on_change(self, callback: Callable[[Contention], None]) -> None:
        """Call back whenever it becomes the turn of a request that has to wait for others."""
        self._callback = callback

    def check(self) -> None:
        """Call back if it became the turn of another request; the semaphore's to call."""
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
