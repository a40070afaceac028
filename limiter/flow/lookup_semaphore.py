"""Limit on simultaneous lookups, partition queries and topic listings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.flow.response_budget import ResponseReservation


class LookupSemaphore:
    """Slots for metadata requests, which are refused, not queued, when all slots are taken.

    Attributes:
        pending_requests: Taken slots (pulsar_broker_lookup_pending_requests).

    Source: upstream BrokerService.lookupRequestSemaphore (maxConcurrentLookupRequest).
    """

    def __init__(self, max_requests: int) -> None:
        self.max_requests = max_requests
        self.pending_requests = 0
        self._owned: dict[Hashable, set[LookupPermit]] = {}

    @property
    def full(self) -> bool:
        """True if no slot is free."""
        return self.pending_requests >= self.max_requests

    def try_acquire(
        self, owner: Hashable, reservation: ResponseReservation | None = None
    ) -> LookupPermit | None:
        """Take and return a slot, or return None if no slot is free.

        Args:
            owner: The owner of the request; see ``cancel_owner``.
            reservation: The response's share of the connection's budget; released with the slot, or
                immediately when no slot is free.
        """
        if self.full:
            if reservation is not None:
                reservation.release()
            return None
        self.pending_requests += 1
        permit = LookupPermit(self, owner, reservation)
        self._owned.setdefault(owner, set()).add(permit)
        return permit

    def cancel_owner(self, owner: Hashable) -> None:
        """Free every slot held by ``owner``; slots leaked on purpose stay taken."""
        for permit in list(self._owned.get(owner, ())):
            permit.release()

    def ended(self, permit: LookupPermit, owner: Hashable, *, freed: bool) -> None:
        """Free a permit's slot, or keep a leaked slot taken forever; called by the permit."""
        self.pending_requests -= freed
        permits = self._owned[owner]
        permits.discard(permit)
        if not permits:
            del self._owned[owner]


class LookupPermit:
    """A slot for a metadata request, held for the duration of a ``with`` block."""

    __slots__ = ("_live", "_owner", "_reservation", "_semaphore")

    def __init__(
        self,
        semaphore: LookupSemaphore,
        owner: Hashable,
        reservation: ResponseReservation | None = None,
    ) -> None:
        self._semaphore = semaphore
        self._owner = owner
        self._reservation = reservation
        self._live = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Free the slot; idempotent."""
        self._end(freed=True)

    def leak(self) -> None:
        """Never free the slot, like a real broker that leaves a request unanswered."""
        self._end(freed=False)

    def _end(self, *, freed: bool) -> None:
        if self._live:
            self._live = False
            self._semaphore.ended(self, self._owner, freed=freed)
            if self._reservation is not None:
                self._reservation.release()
