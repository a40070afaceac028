"""Queue of growing permits, which precede new work, or end a stall."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from limiter.admission.fair_queue import LeastFirst

if TYPE_CHECKING:
    from limiter.permits.account import Waiter
    from limiter.permits.permit import Permit


class GrowthQueue:
    """Waiting growth, oldest first, and the number of held permits that do not wait to grow.

    The smallest growth may overtake the oldest when the oldest does not fit: admitted work is
    finite, and no new work is admitted meanwhile, so the oldest waits for admitted work only.
    """

    def __init__(self) -> None:
        self._queue: OrderedDict[Waiter, None] = OrderedDict()
        self._by_need: LeastFirst[Waiter] = LeastFirst()
        # Includes growth that waits elsewhere until its account holds less.
        self._all: OrderedDict[Waiter, None] = OrderedDict()
        self._all_by_need: LeastFirst[Waiter] = LeastFirst()
        self._held_permits = 0
        self._growing_permits = 0

    def __len__(self) -> int:
        return len(self._queue)

    def __contains__(self, waiter: Waiter) -> bool:
        return waiter in self._queue

    def add(self, waiter: Waiter) -> None:
        """Queue a growth that goes first."""
        self._queue[waiter] = None
        self._by_need.put(waiter, waiter.needed)

    def discard(self, waiter: Waiter) -> None:
        """Remove a growth."""
        del self._queue[waiter]
        self._by_need.discard(waiter)

    def begins(self, waiter: Waiter, permit: Permit) -> None:
        """Count a waiting growth of ``permit``, queued here or parked at its account."""
        self._all[waiter] = None
        self._all_by_need.put(waiter, waiter.needed)
        permit.growing += 1
        self._growing_permits += permit.growing == 1 and permit.size > 0

    def ends(self, waiter: Waiter, permit: Permit) -> None:
        """Stop counting a growth of ``permit``."""
        del self._all[waiter]
        self._all_by_need.discard(waiter)
        permit.growing -= 1
        self._growing_permits -= permit.growing == 0 and permit.size > 0

    def took_on(self, permit: Permit) -> None:
        """Count a permit whose size is above 0."""
        if permit.size > 0:
            self._held_permits += 1
            self._growing_permits += permit.growing > 0
        # A permit restored after another of its growths was undone needs less.
        for waiter in self._all if permit.growing else ():
            if waiter.previous is permit:
                self._all_by_need.put(waiter, waiter.needed)
                if waiter in self._queue:
                    self._by_need.put(waiter, waiter.needed)

    def gave_back(self, permit: Permit, size: int) -> None:
        """Count a permit that released all of its ``size``."""
        if size > 0:
            self._held_permits -= 1
            self._growing_permits -= permit.growing > 0

    def oldest(self) -> Waiter | None:
        """Return the oldest queued growth."""
        return next(iter(self._queue), None)

    def youngest(self) -> Waiter | None:
        """Return the youngest growth, queued or parked."""
        return next(reversed(self._all), None)

    def smallest(self) -> Waiter | None:
        """Return the smallest queued growth."""
        return _least(self._by_need)

    def every_holder_waits(self) -> bool:
        """Return True if all permits above size 0 wait to grow, so that no release can come."""
        return 0 < self._held_permits == self._growing_permits

    def oldest_within(self, room: int) -> Waiter | None:
        """Return the oldest growth, queued or parked, that needs at most ``room``."""
        smallest = _least(self._all_by_need)
        if smallest is None or smallest.needed > room:
            return None
        return next(waiter for waiter in self._all if waiter.needed <= room)


def _least(by_need: LeastFirst[Waiter]) -> Waiter | None:
    while (waiter := by_need.first()) is not None:
        # A permit released since needs its full new size.
        if by_need.value_of(waiter) == waiter.needed:
            return waiter
        by_need.put(waiter, waiter.needed)
    return None
