"""The interface of admission policies, and the policy as shipped: first come, first served.

A policy knows what waits and says what is next; it neither grants nor counts what is acquired.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from limiter.permits.account import Account, SharedHolder, Waiter
    from limiter.permits.permit import Permit


class Admission(Protocol):
    """Knows the requests that wait, and says which one is next."""

    def validate(self, account: Account | None, size: int) -> None:
        """Refuse new work that no waiting will ever admit.

        Raises:
            PermitTooLargeError: It exceeds a cap of its account.
        """

    def admits_new(self, account: Account | None, namespace: str, size: int) -> bool:
        """Return True if new work that fits may be granted while nobody waits."""

    def stands_for(self, holder: SharedHolder, waiter: Waiter) -> Account | None:
        """Return the member in whose line a new request of all should stand."""

    def admits_growth(self, waiter: Waiter) -> bool:
        """Return True if growth that fits may be granted while nobody is before it."""

    def precedes(self, waiter: Waiter) -> bool:
        """Return True if it would be a new request's turn at once, although others wait."""

    def add(self, waiter: Waiter) -> None:
        """Let a request wait."""

    def discard(self, waiter: Waiter) -> None:
        """A request waits no more: it was refused, or has left."""

    def admitted(self, waiter: Waiter, turn: Waiter) -> bool:
        """A waiting request is granted; true when it goes before the one whose turn it is."""

    def turn(self) -> Waiter | None:
        """Return the request whose turn it is; None when nobody waits for permits of others."""

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return what is granted from ``available`` permits while it is somebody's turn.

        That request or one that may go before it; None when nobody fits.
        """

    def crowded_out_by(self, waiter: Waiter) -> Waiter | None:
        """Return the request that loses its place in a full queue to a new one, if any does."""

    def holds_changed(self, account: Account) -> None:
        """An account holds more or less than before."""

    def deferred_changed(self, account: Account) -> None:
        """An account goes after all others from now on, or does so no more."""

    def exchanged(self, waiter: Waiter, permit: Permit) -> None:
        """``permit`` takes the place of the one that a request updates."""

    def took_on(self, permit: Permit) -> None:
        """A permit was granted, or got its amount back."""

    def gave_back(self, permit: Permit, size: int) -> None:
        """A permit was emptied of ``size``."""

    def joined(self, holder: SharedHolder, account: Account) -> None:
        """An account shares a holder from now on."""

    def left(self, holder: SharedHolder, account: Account) -> None:
        """An account shares a holder no longer."""

    def accounts_changed(self) -> None:
        """There are fewer accounts, or another limit."""

    def every_holder_waits(self) -> bool:
        """Return True if every permit that holds something waits to grow."""

    def overdraft(self, room: int) -> Waiter | None:
        """Return the oldest growth that needs no more than ``room``."""

    def youngest_growth(self) -> Waiter | None:
        """Return the growth that came last."""


class FifoAdmission:
    """In the order of asking; growth of a permit waits at the tail like everybody else.

    Source: upstream AsyncSemaphoreImpl, its one queue.
    """

    def __init__(self) -> None:
        self._queue: OrderedDict[Waiter, None] = OrderedDict()

    def validate(self, account: Account | None, size: int) -> None:
        """There are no caps."""

    def admits_new(self, account: Account | None, namespace: str, size: int) -> bool:
        """See Admission."""
        return True

    def stands_for(self, holder: SharedHolder, waiter: Waiter) -> Account | None:
        """There is one line for all."""
        return holder.first_member()

    def admits_growth(self, waiter: Waiter) -> bool:
        """See Admission."""
        return True

    def precedes(self, waiter: Waiter) -> bool:
        """See Admission."""
        return False

    def add(self, waiter: Waiter) -> None:
        """See Admission."""
        self._queue[waiter] = None

    def discard(self, waiter: Waiter) -> None:
        """See Admission."""
        del self._queue[waiter]

    def admitted(self, waiter: Waiter, turn: Waiter) -> bool:
        """See Admission."""
        del self._queue[waiter]
        return False

    def turn(self) -> Waiter | None:
        """See Admission."""
        return next(iter(self._queue), None)

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the head if it fits. One of 0 needs something to be free, too, as upstream."""
        return turn if 0 < available >= turn.needed else None

    def crowded_out_by(self, waiter: Waiter) -> Waiter | None:
        """None: the new request is refused."""
        return None

    def holds_changed(self, account: Account) -> None:
        """Nothing depends on what anybody holds."""

    def deferred_changed(self, account: Account) -> None:
        """Strict order: nobody goes before anybody."""

    def exchanged(self, waiter: Waiter, permit: Permit) -> None:
        """Nothing depends on it."""

    def took_on(self, permit: Permit) -> None:
        """Nothing depends on it."""

    def gave_back(self, permit: Permit, size: int) -> None:
        """Nothing depends on it."""

    def joined(self, holder: SharedHolder, account: Account) -> None:
        """Nothing depends on it."""

    def left(self, holder: SharedHolder, account: Account) -> None:
        """Nothing depends on it."""

    def accounts_changed(self) -> None:
        """Nothing depends on it."""

    def every_holder_waits(self) -> bool:
        """As shipped, a stall lasts until somebody times out."""
        return False

    def overdraft(self, room: int) -> Waiter | None:
        """See Admission."""
        return None

    def youngest_growth(self) -> Waiter | None:
        """See Admission."""
        return None
