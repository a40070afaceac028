"""Admission policies: the order of requests, refusals, and timeouts.

A policy is notified of events and queried for the next request; the semaphore grants and counts
permits. docs/your-own-policy.md shows how to write and test a policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.admission.view import BudgetView
    from limiter.errors import PermitAcquireRefusedError
    from limiter.permits.account import Account, SharedHolder, Waiter
    from limiter.permits.permit import Permit


class Admission:
    """Base policy of a budget: oldest request first, regardless of owners.

    Args:
        view: The budget, its queue, and their measurements.

    Attributes:
        counts_anonymous: True if requests without an owner have accounts as well.
    """

    counts_anonymous: bool = False

    def __init__(self, view: BudgetView) -> None:
        self.view = view

    # -- refusals and timeouts
    # -----------------------------------------------------------------------

    def refuses(self, waiter: Waiter) -> PermitAcquireRefusedError | None:
        """Return the reason to refuse a request before it waits; None to queue it."""

    def sheds(self) -> tuple[Waiter, PermitAcquireRefusedError] | None:
        """Return a waiting request to refuse now, with the reason; None to refuse no request.

        Called whenever a request may be next, until it returns None.
        """

    def wait_seconds(self, waiter: Waiter) -> float:
        """Return the timeout of a request that begins to wait."""
        return self.view.queue.timeout_seconds

    # -- order
    # --------------------------------------------------------------------------------------

    def turn(self) -> Waiter | None:
        """Return the next request; None when no request waits for permits of another owner."""
        return next(iter(self.view.queue.requests), None)

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the request to grant from ``available`` permits; None when none fits.

        Either ``turn`` or a request that may overtake ``turn``.
        """
        return turn if turn.needed <= available else None

    def ends_stall(self, room: int) -> tuple[Waiter, bool] | None:
        """Return a growth to end a stall, with True to grant it; None if not stalled.

        Args:
            room: The most permits of a granted growth, partly beyond the limit.
        """

    def admitted(self, waiter: Waiter, turn: Waiter) -> None:
        """Remove a granted request, which may have overtaken ``turn``."""
        self.discard(waiter)

    def add(self, waiter: Waiter) -> None:
        """Add a waiting request, the last of ``view.waiting``."""

    def discard(self, waiter: Waiter) -> None:
        """Remove a refused or abandoned request."""

    def crowded_out_by(self, waiter: Waiter) -> Waiter | None:
        """Return the request that loses its slot in a full queue to a new request, if any."""
        return None

    # -- requests that need not wait
    # ------------------------------------------------------------------

    def validate(self, account: Account | None, size: int) -> None:
        """Refuse new work larger than a limit, as no wait can make it fit.

        Raises:
            PermitTooLargeError: The size exceeds a cap of the account.
        """

    def admits_new(self, account: Account | None, namespace: str, size: int) -> bool:
        """Return True if new work that fits may be granted while no request waits."""
        return True

    def stands_for(self, holder: SharedHolder, waiter: Waiter) -> Account | None:
        """Return the member in whose line a new shared request should wait."""
        return holder.first_member()

    def admits_growth(self, waiter: Waiter) -> bool:
        """Return True if growth that fits may be granted while no request precedes it."""
        return True

    def precedes(self, waiter: Waiter) -> bool:
        """Return True if a new request would be next immediately, despite waiting requests."""
        return False

    # -- held permits ---------------------------------------------------------------------------

    def holds_changed(self, account: Account) -> None:
        """Handle a change of an account's held permits."""

    def deferred_changed(self, account: Account) -> None:
        """Handle a change of an account's deferred state."""

    def exchanged(self, waiter: Waiter, permit: Permit) -> None:
        """Set ``permit`` as the permit that a waiting update will exchange."""

    def took_on(self, permit: Permit) -> None:
        """Count a granted or restored permit."""

    def gave_back(self, permit: Permit, size: int) -> None:
        """Count a permit that released all of its ``size``."""

    def joined(self, holder: SharedHolder, account: Account) -> None:
        """Handle an account that joined a shared holder."""

    def left(self, holder: SharedHolder, account: Account) -> None:
        """Handle an account that left a shared holder."""

    def accounts_changed(self) -> None:
        """Handle a smaller number of accounts, or a changed limit."""
