"""Ledger of a memory budget: every acquired, exchanged and released permit, with its owner.

Optional: a semaphore without a ledger records nothing. The ledger knows the ages of permits, keeps
the last events, and at the end of a run names the owners with unreleased permits. It stores names
instead of owners, so that it keeps no closed connection alive.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from limiter.permits.account import SharedHolder

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from limiter.clock import Clock
    from limiter.permits.permit import Holder, Permit


class PermitRecord(Protocol):
    """Interface of an object that records the events of permits, such as a Ledger."""

    def took_on(self, permit: Permit, instead_of: Permit | None) -> None:
        """Record a permit that holds bytes from now on.

        In an exchange ``instead_of`` is the permit that was emptied for it, just before.
        """

    def gave_back(self, permit: Permit, size: int) -> None:
        """Record a permit that released all of its ``size``."""

    def passed(self, owner: Hashable, namespace: str, size: int) -> None:
        """Record a permit of ``size`` granted and released in one event-loop iteration."""


RECENT_EVENTS = 256
"""Kept events; the oldest is dropped."""

NAMED_SHARERS = 3
"""Most named owners of a shared permit."""

NAMED_HOLDINGS = 5
"""Most unreleased holdings named in an error sentence."""


class LedgerEvent(Enum):
    """Events in the life of a permit."""

    ACQUIRED = "acquired"
    UPDATED = "updated"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A recorded event in the life of a permit.

    Attributes:
        event: The kind of event.
        owner: The name of the permit's owner.
        namespace: The namespace of the request; empty if the request named none.
        size_bytes: The bytes acquired, held after the update, or released.
        held_seconds: Age of the permit, including the permits it was exchanged for, at the event.
        ago_seconds: Seconds since the event.
    """

    event: LedgerEvent
    owner: str
    namespace: str
    size_bytes: int
    held_seconds: float
    ago_seconds: float


@dataclass(frozen=True, slots=True)
class LedgerHolding:
    """Permits held by an owner for a namespace. See LedgerEntry for the units."""

    budget: str
    owner: str
    namespace: str
    size_bytes: int
    permits: int
    age_seconds: float

    def __str__(self) -> str:
        namespace = f" for {self.namespace}" if self.namespace else ""
        return (
            f"{self.owner} still holds {self.size_bytes} bytes of {self.budget}{namespace}, "
            f"taken {self.age_seconds:.1f} s ago"
        )


@dataclass(slots=True)
class EventTotal:
    """Number of events of the same type, and the sum of their bytes."""

    events: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LedgerStatistics:
    """Snapshot of a ledger's totals.

    An update counts with its new size.
    """

    acquired: EventTotal
    updated: EventTotal
    released: EventTotal
    live_permits: int


class UnbalancedLedgerError(Exception):
    """Some permits of a memory budget were not released.

    Attributes:
        holdings: The permits still held, largest first.
    """

    def __init__(self, holdings: Iterable[LedgerHolding]) -> None:
        self.holdings = tuple(holdings)
        super().__init__(*self.holdings)

    def __str__(self) -> str:
        named = [str(holding) for holding in self.holdings[:NAMED_HOLDINGS]]
        more = len(self.holdings) - len(named)
        others = [f"and {more} more"] if more else []
        return "the ledger is not balanced: " + "; ".join([*named, *others])


class Ledger:
    """Record of the permits of a memory budget, with their owners and ages.

    Implements PermitRecord.

    Args:
        clock: The source of time.
        name: Returns the name of an owner; None is for requests without an owner.
        budget: The name of the budget.

    Bounds: an entry for each live permit, and RECENT_EVENTS events.
    """

    def __init__(
        self,
        clock: Clock,
        name: Callable[[Hashable | None], str] = repr,
        budget: str = "memory",
    ) -> None:
        self.budget = budget
        self._clock = clock
        self._name = name
        self._live: dict[Permit, tuple[float, str]] = {}
        self._recent: deque[tuple[LedgerEvent, float, float, str, str, int]] = deque(
            maxlen=RECENT_EVENTS
        )
        self._acquired, self._updated, self._released = EventTotal(), EventTotal(), EventTotal()
        # The age and owner of the permit emptied last, if it held bytes.
        self._given_back: tuple[float, str] | None = None

    # -- events of the semaphore --------------------------------------------------------------

    def took_on(self, permit: Permit, instead_of: Permit | None) -> None:
        """Record a permit that holds bytes from now on; see PermitRecord."""
        now = self._clock.now()
        given_back = self._given_back
        if instead_of is None or given_back is None:
            event, total = LedgerEvent.ACQUIRED, self._acquired
            since, owner = now, names_of(permit.holder, self._name)
        else:
            # The release recorded a moment ago was the first half of this exchange.
            event, total = LedgerEvent.UPDATED, self._updated
            since, owner = given_back
            self._released.events -= 1
            self._released.size_bytes -= self._recent.pop()[-1]
        self._live[permit] = since, owner
        size = permit.size
        total.events += 1
        total.size_bytes += size
        self._recent.append((event, now, since, owner, permit.namespace, size))

    def gave_back(self, permit: Permit, size: int) -> None:
        """Record a permit that released its bytes.

        A permit that was already empty is not an event.
        """
        given_back = self._given_back = self._live.pop(permit, None)
        if given_back is not None:
            since, owner = given_back
            total = self._released
            total.events += 1
            total.size_bytes += size
            now = self._clock.now()
            self._recent.append((LedgerEvent.RELEASED, now, since, owner, permit.namespace, size))

    def passed(self, owner: Hashable, namespace: str, size: int) -> None:
        """Record a permit that was granted and released within one event-loop iteration."""
        now, name = self._clock.now(), self._name(owner)
        for event, total in (
            (LedgerEvent.ACQUIRED, self._acquired),
            (LedgerEvent.RELEASED, self._released),
        ):
            total.events += 1
            total.size_bytes += size
            self._recent.append((event, now, now, name, namespace, size))

    # -- queries ------------------------------------------------------------------------------

    def age_seconds(self, permit: Permit) -> float | None:
        """Return the age of a permit in seconds; None for a permit that is not held."""
        live = self._live.get(permit)
        return None if live is None else self._clock.now() - live[0]

    def recent(self, limit: int = RECENT_EVENTS) -> list[LedgerEntry]:
        """Return the last recorded events, newest first."""
        now = self._clock.now()
        return [
            LedgerEntry(event, owner, namespace, size, at - since, now - at)
            for event, at, since, owner, namespace, size in islice(reversed(self._recent), limit)
        ]

    def statistics(self) -> LedgerStatistics:
        """Return a snapshot of the ledger's totals."""
        return LedgerStatistics(
            replace(self._acquired),
            replace(self._updated),
            replace(self._released),
            len(self._live),
        )

    def holdings(self) -> list[LedgerHolding]:
        """Return the held permits grouped by owner and namespace, largest first.

        The cost is proportional to the number of held permits.
        """
        now = self._clock.now()
        found: dict[tuple[str, str], tuple[int, int, float]] = {}
        for permit, (since, recorded) in self._live.items():
            key = names_of(permit.holder, self._name) or recorded, permit.namespace
            size, permits, oldest = found.get(key, (0, 0, now))
            found[key] = size + permit.size, permits + 1, min(oldest, since)
        holdings = [
            LedgerHolding(self.budget, *key, size, permits, now - oldest)
            for key, (size, permits, oldest) in found.items()
        ]
        return sorted(holdings, key=lambda holding: (-holding.size_bytes, holding.owner))


def names_of(holder: Holder | None, name: Callable[[Hashable | None], str]) -> str:
    """Return the name of a permit's owner, or of up to three owners that share it.

    Empty if all owners have left.
    """
    if not isinstance(holder, SharedHolder):
        return name(None if holder is None else holder.owner)
    members = holder.members()
    names = [name(one.owner) for one in islice(members, NAMED_SHARERS)]
    more = sum(1 for _ in members)
    return ", ".join(names) + (f" and {more} more" if more else "")


def check_all_balanced(ledgers: Iterable[Ledger]) -> None:
    """Check that no budget has unreleased permits.

    Raises:
        UnbalancedLedgerError: Some permits are held; it names the holders of all budgets.
    """
    holdings = [holding for ledger in ledgers for holding in ledger.holdings()]
    if holdings:
        raise UnbalancedLedgerError(holdings)
