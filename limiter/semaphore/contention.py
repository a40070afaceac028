"""Contention for a semaphore: the next request, when it waits for permits of other owners."""

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
    """Reports the request that waits for permits of other owners, and its changes."""

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
        """Return True if another owner waits: under fifo also behind the owner's own request."""
        return any(
            (one.owner if one.account is None else one.account.owner) is not owner
            for one in self._waiting.requests
        )

    def on_change(self, callback: Callable[[Contention], None]) -> None:
        """Call back whenever another request becomes next and has to wait."""
        self._callback = callback

    def check(self) -> None:
        """Call back if another request became next; called by the semaphore."""
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
