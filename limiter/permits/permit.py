"""Permits, their holders and budget, outcomes of requests, and statistics of a semaphore."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

UNBOUNDED_PERMITS = 2**63 - 1
"""The available permits of an unbounded semaphore (upstream: Long.MAX_VALUE)."""


class AcquireOutcome(Enum):
    """Outcomes of permit requests."""

    GRANTED = "granted"
    OVERDRAFT = "granted beyond the limit"
    TIMED_OUT = "timed out"
    QUEUE_FULL = "queue full"
    CANCELLED = "cancelled"
    CLOSED = "closed"
    OVERSIZED = "oversized"
    STALLED = "refused to end a stall"
    REFUSED = "refused by the policy"

    # Members compare by identity; Enum's own hash is a slow Python function, called for each
    # request.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class SemaphoreStatistics:
    """Snapshot of a semaphore's permits and requests.

    Units: permits (bytes, in Floodgate), requests.

    Attributes:
        max_permits: The limit; 0 or less is unbounded.
        acquired_permits: The sum of all live permits.
        available_permits: Free permits; negative in an overdraft, or after the limit was lowered.
        queue_size: Waiting requests.
        max_queue_size: Slots in the queue; 0 or less is unbounded.
        high_water_permits: The largest sum of permits ever.
        holders: Owners with permits or waiting requests (only for requests that name an owner).
        oldest_waiter_seconds: Age of the oldest waiting request; 0 with an empty queue.
        overdraft_permits: Permits beyond the limit in a growth that is still held.
        overdrafts_total: Number of overdrafts.
        passed_total: Requests that overtook the next request.
        refused: Requests refused by the policy, by the label of its reason.
        policy_fault: The fault of a user's policy after which fifo replaced it; otherwise empty.
    """

    max_permits: int
    acquired_permits: int
    available_permits: int
    queue_size: int
    max_queue_size: int
    high_water_permits: int
    holders: int = 0
    oldest_waiter_seconds: float = 0.0
    overdraft_permits: int = 0
    overdrafts_total: int = 0
    passed_total: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    policy_fault: str = ""


@dataclass(frozen=True, slots=True)
class Contention:
    """A request waiting for permits that other owners hold.

    Attributes:
        owner: The owner of the request; None if the request named none.
        namespace: The namespace of the request.
        needed_permits: The requested permits, less the permits already held by a growing permit.
        available_permits: The free permits.
        waited_seconds: Age of the request.
    """

    owner: Hashable | None
    namespace: str
    needed_permits: int
    available_permits: int
    waited_seconds: float


class Holder:
    """Permits held by an owner, or by several owners together.

    Attributes:
        owner: The single owner; None with several owners, or if the request named none.
        namespace: ``tenant/namespace`` of its permits; empty for any namespace.
        permits: The held permits.
    """

    __slots__ = ("namespace", "owner", "permits")

    def __init__(self, owner: Hashable | None, namespace: str) -> None:
        self.owner = owner
        self.namespace = namespace
        self.permits: dict[Permit, None] = {}

    def took_on(self, permit: Permit) -> None:
        """Count a permit granted to the holder."""
        raise NotImplementedError

    def gave_back(self, permit: Permit, size: int) -> None:
        """Stop counting a permit that released all of its ``size``."""
        raise NotImplementedError


class Permit:
    """A number of permits (bytes), held until released or exchanged for another permit.

    Attributes:
        size: The held amount; 0 once the permit was released or superseded. Read-only.
        holder: Its holder; None if the request named no owner.
    """

    __slots__ = ("counted", "growing", "holder", "namespace", "returned", "size")

    def __init__(
        self,
        size: int,
        holder: Holder | None = None,
        namespace: str = "",
        *,
        counted: bool = True,
    ) -> None:
        self.size = size
        self.holder = holder
        self.namespace = namespace
        # False if granted while there was no limit: not part of any sum.
        self.counted = counted
        # Released by its holder: undoing an update later must not revive it.
        self.returned = False
        # Number of its waiting updates.
        self.growing = 0

    @property
    def owner(self) -> Hashable | None:
        """The single owner of the permit; None without an owner, or with several."""
        return None if self.holder is None else self.holder.owner

    def __repr__(self) -> str:
        return f"<Permit {self.size}>"


class Budget:
    """A limit on permits, and the number of permits granted within the limit.

    Units: permits.

    Attributes:
        max_permits: The limit; 0 or less is unbounded and uncounted.
        acquired: The sum of all live permits.
        high_water: The largest sum of live permits ever.
        overdraft: True from a grant beyond the limit until the sum is within the limit again.
        overdrafts_total: The number of such grants.
        closed: True when no further permits are granted.
    """

    def __init__(self, max_permits: int) -> None:
        self.max_permits = max_permits
        self.acquired = self.high_water = self.overdrafts_total = 0
        self.overdraft = self.closed = False

    @property
    def unbounded(self) -> bool:
        """True without a limit, when permits are not counted."""
        return self.max_permits <= 0

    @property
    def available_permits(self) -> int:
        """Number of free permits; 2**63 - 1 when unbounded."""
        return UNBOUNDED_PERMITS if self.max_permits <= 0 else self.max_permits - self.acquired

    @property
    def overdraft_permits(self) -> int:
        """Held permits beyond the limit after an overdraft, otherwise 0."""
        return max(0, self.acquired - self.max_permits) if self.overdraft else 0

    def add(self, size: int) -> None:
        """Count a granted permit of ``size``."""
        self.acquired += size
        self.high_water = max(self.high_water, self.acquired)

    def end_overdraft(self) -> None:
        """End an overdraft once the acquired permits are within the limit."""
        if self.unbounded or self.acquired <= self.max_permits:
            self.overdraft = False
