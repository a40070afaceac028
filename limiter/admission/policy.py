"""Base class of admission policies, which decide the order, refusal and timeout of requests.

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
    """Base class of admission policies: grants the oldest request first, whoever owns it.

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
        """Return the error that refuses a request before it waits; None to let it wait."""

    def sheds(self) -> tuple[Waiter, PermitAcquireRefusedError] | None:
        """Return a waiting request to refuse now, with the error; None to refuse no request.

        Called whenever a request may be next, until it returns None.
        """

    def wait_seconds(self, waiter: Waiter) -> float:
        """Return the timeout, in seconds, of a request that begins to wait."""
        return self.view.queue.timeout_seconds

    # -- order
    # --------------------------------------------------------------------------------------

    def turn(self) -> Waiter | None:
        """Return the next request; None if no request waits for permits that other owners hold."""
        return next(iter(self.view.queue.requests), None)

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the request to grant from ``available`` permits; None when none fits.

        Either ``turn`` or a request that may overtake ``turn``.
        """
        return turn if turn.needed <= available else None

    def ends_stall(self, room: int) -> tuple[Waiter, bool] | None:
        """Return a request to grant (True) or refuse (False) when all permits wait to grow.

        None if there is no such stall, or no request whose grant or refusal would end it.

        Args:
            room: The largest number of permits for a granted growth, partly beyond the limit.
        """

    def admitted(self, waiter: Waiter, turn: Waiter) -> None:
        """Remove a granted request, which may have overtaken ``turn``."""
        self.discard(waiter)

    def add(self, waiter: Waiter) -> None:
        """Add a request that begins to wait, the last of ``view.waiting``."""

    def discard(self, waiter: Waiter) -> None:
        """Remove a refused or abandoned request from the policy's order."""

    def crowded_out_by(self, waiter: Waiter) -> Waiter | None:
        """Return the request to refuse in a full queue so that ``waiter`` gets a slot, or None."""
        return None

    # -- requests that need not wait
    # ------------------------------------------------------------------

    def validate(self, account: Account | None, size: int) -> None:
        """Raise an error if a new request can never be granted, as it exceeds a limit.

        Raises:
            PermitTooLargeError: The size exceeds a cap of the account.
        """

    def admits_new(self, account: Account | None, namespace: str, size: int) -> bool:
        """Return True if a new request that fits may be granted while no request waits."""
        return True

    def stands_for(self, holder: SharedHolder, waiter: Waiter) -> Account | None:
        """Return the member account in whose line a new request of a shared holder waits."""
        return holder.first_member()

    def admits_growth(self, waiter: Waiter) -> bool:
        """Return True if a request to enlarge a permit may be granted when it fits and is next."""
        return True

    def precedes(self, waiter: Waiter) -> bool:
        """Return True if a new request would be next immediately, despite waiting requests."""
        return False

    # -- held permits ---------------------------------------------------------------------------

    def holds_changed(self, account: Account) -> None:
        """React to a change in the number of permits that an account holds."""

    def deferred_changed(self, account: Account) -> None:
        """React to an account that is now deferred behind all others, or no longer deferred."""

    def exchanged(self, waiter: Waiter, permit: Permit) -> None:
        """React to a granted update: ``permit`` replaces the permit ``waiter.previous``."""

    def took_on(self, permit: Permit) -> None:
        """Count a granted or restored permit."""

    def gave_back(self, permit: Permit, size: int) -> None:
        """Stop counting a permit that released all of its ``size``."""

    def joined(self, holder: SharedHolder, account: Account) -> None:
        """React to an account that became a member of a shared holder."""

    def left(self, holder: SharedHolder, account: Account) -> None:
        """React to an account that is no longer a member of a shared holder."""

    def accounts_changed(self) -> None:
        """React to a decrease in the number of accounts, or to a changed limit."""
