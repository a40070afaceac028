"""Growth of permits that are held already: it goes before new work, or ends a stall."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from limiter.admission.fair_queue import LeastFirst

if TYPE_CHECKING:
    from limiter.permits.account import Waiter
    from limiter.permits.permit import Permit


class GrowthQueue:
    """Updates that wait, the oldest first, and a count of permits that do not wait to grow.

    The smallest may go before the oldest when that does not fit: what is admitted is finite, and
    nothing new is admitted meanwhile, so the oldest waits for admitted work only.
    """

    def __init__(self) -> None:
        self._queue: OrderedDict[Waiter, None] = OrderedDict()
        self._by_need: LeastFirst[Waiter] = LeastFirst()
        # With those that wait elsewhere until their account holds less.
        self._all: OrderedDict[Waiter, None] = OrderedDict()
        self._all_by_need: LeastFirst[Waiter] = LeastFirst()
        self._held_permits = 0
        self._growing_permits = 0

    def __len__(self) -> int:
        return len(self._queue)

    def __contains__(self, waiter: Waiter) -> bool:
        return waiter in self._queue

    def add(self, waiter: Waiter) -> None:
        """Let a growth wait here, where it goes first."""
        self._queue[waiter] = None
        self._by_need.put(waiter, waiter.needed)

    def discard(self, waiter: Waiter) -> None:
        """A growth waits here no more."""
        del self._queue[waiter]
        self._by_need.discard(waiter)

    def begins(self, waiter: Waiter, permit: Permit) -> None:
        """A growth of ``permit`` waits, here or until its account holds less."""
        self._all[waiter] = None
        self._all_by_need.put(waiter, waiter.needed)
        permit.growing += 1
        self._growing_permits += permit.growing == 1 and permit.size > 0

    def ends(self, waiter: Waiter, permit: Permit) -> None:
        """A growth of ``permit`` waits no more."""
        del self._all[waiter]
        self._all_by_need.discard(waiter)
        permit.growing -= 1
        self._growing_permits -= permit.growing == 0 and permit.size > 0

    def took_on(self, permit: Permit) -> None:
        """Count a permit that holds something."""
        if permit.size > 0:
            self._held_permits += 1
            self._growing_permits += permit.growing > 0
        # One that has its amount again, after another growth of it was undone, needs less.
        for waiter in self._all if permit.growing else ():
            if waiter.previous is permit:
                self._all_by_need.put(waiter, waiter.needed)
                if waiter in self._queue:
                    self._by_need.put(waiter, waiter.needed)

    def gave_back(self, permit: Permit, size: int) -> None:
        """Count a permit that was emptied of ``size``."""
        if size > 0:
            self._held_permits -= 1
            self._growing_permits -= permit.growing > 0

    def oldest(self) -> Waiter | None:
        """Return the growth that waits for longest."""
        return next(iter(self._queue), None)

    def youngest(self) -> Waiter | None:
        """Return the growth that came last, wherever it waits."""
        return next(reversed(self._all), None)

    def smallest(self) -> Waiter | None:
        """Return the growth that needs least, of those that wait here."""
        return _least(self._by_need)

    def every_holder_waits(self) -> bool:
        """Return True if each permit that holds something waits to grow: none can be given back."""
        return 0 < self._held_permits == self._growing_permits

    def oldest_within(self, room: int) -> Waiter | None:
        """Return the oldest growth that needs no more than ``room``, wherever it waits."""
        smallest = _least(self._all_by_need)
        if smallest is None or smallest.needed > room:
            return None
        return next(waiter for waiter in self._all if waiter.needed <= room)


def _least(by_need: LeastFirst[Waiter]) -> Waiter | None:
    while (waiter := by_need.first()) is not None:
        # What it held may have been released since: then it needs the whole.
        if by_need.value_of(waiter) == waiter.needed:
            return waiter
        by_need.put(waiter, waiter.needed)
    return None
