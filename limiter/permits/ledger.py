"""A ledger of one budget: every permit that was acquired, exchanged and given back, and by whom.

Optional: a semaphore without one records nothing. The ledger knows since when a permit is held,
keeps the last events, and at the end of a run names the owners that have not given everything back.

It keeps names, never owners: a connection that is gone is not kept alive by what it once held.
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
    """A record that is told of every permit; see Ledger."""

    def took_on(self, permit: Permit, instead_of: Permit | None) -> None:
        """A permit holds something from now on.

        In an exchange ``instead_of`` is the one that was emptied for it, just before.
        """

    def gave_back(self, permit: Permit, size: int) -> None:
        """A permit was emptied of ``size``."""

    def passed(self, owner: Hashable, namespace: str, size: int) -> None:
        """A permit of ``size`` was granted and given back within a turn."""


RECENT_EVENTS = 256
"""Events that are kept; the oldest is forgotten."""

NAMED_SHARERS = 3
"""The number of owners that are named of a shared permit."""

NAMED_HOLDINGS = 5
"""Of what was not given back, a sentence names so many."""


class LedgerEvent(Enum):
    """An event in the life of a permit."""

    ACQUIRED = "acquired"
    UPDATED = "updated"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One event.

    Attributes:
        event: What happened.
        owner: The name of the permit's owner.
        namespace: What it was for; empty where the request did not say.
        size_bytes: What was acquired, is held after the update, or was given back.
        held_seconds: How long the permit, and those it was exchanged for, had been held then.
        ago_seconds: How long ago it happened.
    """

    event: LedgerEvent
    owner: str
    namespace: str
    size_bytes: int
    held_seconds: float
    ago_seconds: float


@dataclass(frozen=True, slots=True)
class LedgerHolding:
    """Permits that one owner holds for one namespace. See LedgerEntry for the units."""

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
    """The number of events of a kind, and the bytes of them."""

    events: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LedgerStatistics:
    """A snapshot of a ledger. An update counts with what is held after it."""

    acquired: EventTotal
    updated: EventTotal
    released: EventTotal
    live_permits: int


class UnbalancedLedgerError(Exception):
    """Not everything was given back.

    Attributes:
        holdings: What is still held, the largest first.
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
    """Keeps the record of one budget; see limiter.semaphore.bookkeeping.PermitRecord.

    Args:
        name: Names an owner; None is for requests without one.
        budget: What is held, in words.

    Bounds: one entry a live permit, and RECENT_EVENTS events.
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
        # Of the permit that was emptied last, if it held something.
        self._given_back: tuple[float, str] | None = None

    # -- what the semaphore tells -------------------------------------------------------------

    def took_on(self, permit: Permit, instead_of: Permit | None) -> None:
        """See PermitRecord."""
        now = self._clock.now()
        given_back = self._given_back
        if instead_of is None or given_back is None:
            event, total = LedgerEvent.ACQUIRED, self._acquired
            since, owner = now, names_of(permit.holder, self._name)
        else:
            # What was noted as given back a moment ago was the first half of this exchange.
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
        """See PermitRecord. A permit that held nothing any more is no event."""
        given_back = self._given_back = self._live.pop(permit, None)
        if given_back is not None:
            since, owner = given_back
            total = self._released
            total.events += 1
            total.size_bytes += size
            now = self._clock.now()
            self._recent.append((LedgerEvent.RELEASED, now, since, owner, permit.namespace, size))

    def passed(self, owner: Hashable, namespace: str, size: int) -> None:
        """See PermitRecord."""
        now, name = self._clock.now(), self._name(owner)
        for event, total in (
            (LedgerEvent.ACQUIRED, self._acquired),
            (LedgerEvent.RELEASED, self._released),
        ):
            total.events += 1
            total.size_bytes += size
            self._recent.append((event, now, now, name, namespace, size))

    # -- what is known ------------------------------------------------------------------------

    def age_seconds(self, permit: Permit) -> float | None:
        """Return how long a permit has been held; None when it is not."""
        live = self._live.get(permit)
        return None if live is None else self._clock.now() - live[0]

    def recent(self, limit: int = RECENT_EVENTS) -> list[LedgerEntry]:
        """Return the last events, the newest first."""
        now = self._clock.now()
        return [
            LedgerEntry(event, owner, namespace, size, at - since, now - at)
            for event, at, since, owner, namespace, size in islice(reversed(self._recent), limit)
        ]

    def statistics(self) -> LedgerStatistics:
        """Return a frozen snapshot of the totals."""
        return LedgerStatistics(
            replace(self._acquired),
            replace(self._updated),
            replace(self._released),
            len(self._live),
        )

    def holdings(self) -> list[LedgerHolding]:
        """Return what is held, by owner and namespace, the largest first; O(live permits)."""
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
    """Name a holder; of a shared one its first three members. Empty when all have left."""
    if not isinstance(holder, SharedHolder):
        return name(None if holder is None else holder.owner)
    members = holder.members()
    names = [name(one.owner) for one in islice(members, NAMED_SHARERS)]
    more = sum(1 for _ in members)
    return ", ".join(names) + (f" and {more} more" if more else "")


def check_all_balanced(ledgers: Iterable[Ledger]) -> None:
    """Ask that nothing is held of any budget.

    Raises:
        UnbalancedLedgerError: Something is; it names the holders of all budgets.
    """
    holdings = [holding for ledger in ledgers for holding in ledger.holdings()]
    if holdings:
        raise UnbalancedLedgerError(holdings)
