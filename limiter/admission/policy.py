"""Admission policies: who is served next, who is refused, how long a request may wait.

A policy is told what happens and asked what is next; it neither grants nor counts what is acquired.
docs/your-own-policy.md shows how one is written and tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.admission.view import BudgetView
    from limiter.errors import PermitAcquireRefusedError
    from limiter.permits.account import Account, SharedHolder, Waiter
    from limiter.permits.permit import Permit


class Admission:
    """The policy of one budget. As it is, the oldest goes first, and nothing depends on who holds.

    Args:
        view: The budget, its queue, and what is measured of them.

    Attributes:
        counts_anonymous: Whether requests without an owner have accounts, too.
    """

    counts_anonymous: bool = False

    def __init__(self, view: BudgetView) -> None:
        self.view = view

    # -- who is refused, and when ---------------------------------------------------------------

    def refuses(self, waiter: Waiter) -> PermitAcquireRefusedError | None:
        """Return why a request is refused that would begin to wait now; None: it waits."""

    def sheds(self) -> tuple[Waiter, PermitAcquireRefusedError] | None:
        """Return a request that waits and is refused now, and why; None: none is.

        Asked whenever somebody may be next, until there is none.
        """

    def wait_seconds(self, waiter: Waiter) -> float:
        """Return how long a request that begins to wait may do so until it times out."""
        return self.view.queue.timeout_seconds

    # -- who is next ----------------------------------------------------------------------------

    def turn(self) -> Waiter | None:
        """Return the request that is next; None when none waits for permits of others."""
        return next(iter(self.view.queue.requests), None)

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the request that is granted from ``available`` permits; None when none fits.

        The next in turn, or one that may go before it.
        """
        return turn if turn.needed <= available else None

    def ends_stall(self, room: int) -> tuple[Waiter, bool] | None:
        """Return a growth, and whether it is granted or refused; None where nothing is stalled.

        Args:
            room: What it may need at most to be granted, some of it beyond the limit.
        """

    def admitted(self, waiter: Waiter, turn: Waiter) -> None:
        """Forget a request that is granted, maybe before the next in turn."""
        self.discard(waiter)

    def add(self, waiter: Waiter) -> None:
        """Take in that a request waits; it is the last of ``view.waiting`` now."""

    def discard(self, waiter: Waiter) -> None:
        """Forget a request that was refused, or has left."""

    def crowded_out_by(self, waiter: Waiter) -> Waiter | None:
        """Return the request that loses its place in a full queue to a new one, if any does."""
        return None

    # -- who need not wait ----------------------------------------------------------------------

    def validate(self, account: Account | None, size: int) -> None:
        """Refuse new work that no waiting will ever admit.

        Raises:
            PermitTooLargeError: It exceeds a cap of its account.
        """

    def admits_new(self, account: Account | None, namespace: str, size: int) -> bool:
        """Return True if new work that fits may be granted while nobody waits."""
        return True

    def stands_for(self, holder: SharedHolder, waiter: Waiter) -> Account | None:
        """Return the member in whose line a new request of all should stand."""
        return holder.first_member()

    def admits_growth(self, waiter: Waiter) -> bool:
        """Return True if growth that fits may be granted while nobody is before it."""
        return True

    def precedes(self, waiter: Waiter) -> bool:
        """Return True if it would be a new request's turn at once, although others wait."""
        return False

    # -- what is held ---------------------------------------------------------------------------

    def holds_changed(self, account: Account) -> None:
        """Take in that an account holds more or less than before."""

    def deferred_changed(self, account: Account) -> None:
        """Take in that an account goes after all others from now on, or does so no more."""

    def exchanged(self, waiter: Waiter, permit: Permit) -> None:
        """Let ``permit`` take the place of the one that a request updates."""

    def took_on(self, permit: Permit) -> None:
        """Count a permit that was granted, or got its amount back."""

    def gave_back(self, permit: Permit, size: int) -> None:
        """Count a permit that was emptied of ``size``."""

    def joined(self, holder: SharedHolder, account: Account) -> None:
        """Take in that an account shares a holder from now on."""

    def left(self, holder: SharedHolder, account: Account) -> None:
        """Take in that an account shares a holder no longer."""

    def accounts_changed(self) -> None:
        """Take in that there are fewer accounts, or another limit."""
