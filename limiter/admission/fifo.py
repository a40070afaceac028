"""Admission: the order in which waiting requests are served. As shipped: first come, first served.

A policy knows what waits and says what is next; it neither grants nor counts what is acquired.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.admission.growth_queue import GrowthQueue
    from limiter.permits.account import Account, SharedHolder, Waiter
    from limiter.permits.permit import Permit


class Admission:
    """An admission policy. Where it does not say otherwise, nothing depends on what is held.

    Attributes:
        growth: Updates that wait, where the policy ends stalls.
    """

    growth: GrowthQueue | None = None

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

    def add(self, waiter: Waiter) -> None:
        """Let a request wait."""
        raise NotImplementedError

    def discard(self, waiter: Waiter) -> None:
        """Forget a request that was refused, or has left."""
        raise NotImplementedError

    def admitted(self, waiter: Waiter, turn: Waiter) -> bool:
        """Forget a request that is granted; true when it goes before the next in turn."""
        self.discard(waiter)
        return False

    def turn(self) -> Waiter | None:
        """Return the request that is next; None when none waits for permits of others."""
        raise NotImplementedError

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the request that is granted from ``available`` permits; None when none fits.

        The next in turn, or one that may go before it.
        """
        raise NotImplementedError

    def crowded_out_by(self, waiter: Waiter) -> Waiter | None:
        """Return the request that loses its place in a full queue to a new one, if any does."""
        return None

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


class FifoAdmission(Admission):
    """First come, first served; growth of a permit waits at the tail like everything else.

    A stall lasts until a request times out.

    Source: upstream AsyncSemaphoreImpl, its one queue.
    """

    def __init__(self) -> None:
        self._queue: OrderedDict[Waiter, None] = OrderedDict()

    def add(self, waiter: Waiter) -> None:
        """See Admission."""
        self._queue[waiter] = None

    def discard(self, waiter: Waiter) -> None:
        """See Admission."""
        del self._queue[waiter]

    def turn(self) -> Waiter | None:
        """See Admission."""
        return next(iter(self._queue), None)

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the head if it fits. One of 0 needs something to be free, too, as upstream."""
        return turn if 0 < available >= turn.needed else None
