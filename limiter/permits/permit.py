"""Permits, their holders and their sum, outcomes of requests, and statistics of a semaphore."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

UNBOUNDED_PERMITS = 2**63 - 1
"""The permits that an unbounded semaphore reports as available (upstream: Long.MAX_VALUE)."""


class AcquireOutcome(Enum):
    """The end of one request for a permit."""

    GRANTED = "granted"
    OVERDRAFT = "granted beyond the limit"
    TIMED_OUT = "timed out"
    QUEUE_FULL = "queue full"
    CANCELLED = "cancelled"
    CLOSED = "closed"
    OVERSIZED = "oversized"
    STALLED = "refused to end a stall"
    REFUSED = "refused by the policy"

    # Members are one of a kind; Enum's own hash is a Python function, and each request asks for it.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class SemaphoreStatistics:
    """A snapshot of a semaphore. Units: permits (bytes, where Floodgate uses it), requests.

    Attributes:
        max_permits: The limit; 0 or less is unbounded.
        acquired_permits: The sum of all live permits.
        available_permits: What is left; negative in an overdraft, or after the limit was lowered.
        queue_size: Requests that wait.
        max_queue_size: Places for them; 0 or less is an unbounded queue.
        high_water_permits: The most that was ever acquired at once.
        holders: Owners that hold or wait for something (only requests that name one).
        oldest_waiter_seconds: How long the oldest waiting request has waited; 0 without one.
        overdraft_permits: How far beyond the limit a growth went that is still held.
        overdrafts_total: How often that happened.
        passed_total: Requests that went before one whose turn it was.
        refused: Requests that the policy refused, by the label of its reason.
        policy_fault: What a policy of one's own did wrong, so that fifo took its place; else empty.
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
    """A request that waits for memory of others.

    Attributes:
        owner: The owner of the request; None where it named none.
        namespace: The namespace it is for.
        needed_permits: What is asked for, less what a growing permit holds already.
        available_permits: What is free.
        waited_seconds: Seconds it has waited.
    """

    owner: Hashable | None
    namespace: str
    needed_permits: int
    available_permits: int
    waited_seconds: float


class Holder:
    """The account of one owner, or several owners that hold permits together.

    Attributes:
        owner: The one owner; None where there are several, or where the request named none.
        namespace: ``tenant/namespace`` it holds permits for; empty where it may be any.
        permits: What it holds.
    """

    __slots__ = ("namespace", "owner", "permits")

    def __init__(self, owner: Hashable | None, namespace: str) -> None:
        self.owner = owner
        self.namespace = namespace
        self.permits: dict[Permit, None] = {}

    def took_on(self, permit: Permit) -> None:
        """Count a permit that was granted."""
        raise NotImplementedError

    def gave_back(self, permit: Permit, size: int) -> None:
        """Count a permit that was emptied of ``size``."""
        raise NotImplementedError


class Permit:
    """An amount that is held until it is released, or superseded by an update.

    Attributes:
        size: What is held now; 0 once the permit was released or superseded. To be read only.
        holder: Its holder; None where the request named no owner.
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
        # Granted while there was no limit: it is in no sum, and giving it back changes none.
        self.counted = counted
        # Its holder is done with it: an update that is undone later must not revive it.
        self.returned = False
        # Waiting updates of it.
        self.growing = 0

    @property
    def owner(self) -> Hashable | None:
        """The owner; None where the request named none, or where many share it."""
        return None if self.holder is None else self.holder.owner

    def __repr__(self) -> str:
        return f"<Permit {self.size}>"


class Budget:
    """A limit and what is taken of it. Units: permits.

    Attributes:
        max_permits: The limit; 0 or less is unbounded, and then nothing is counted.
        acquired: The sum of all live permits.
        high_water: The most that was ever acquired at once.
        overdraft: True from a grant beyond the limit until the sum is within it again.
        overdrafts_total: The number of such grants.
        closed: True when nothing is granted any more.
    """

    def __init__(self, max_permits: int) -> None:
        self.max_permits = max_permits
        self.acquired = self.high_water = self.overdrafts_total = 0
        self.overdraft = self.closed = False

    @property
    def unbounded(self) -> bool:
        """True if nothing is limited and nothing counted."""
        return self.max_permits <= 0

    @property
    def available_permits(self) -> int:
        """Permits that could be granted now; the largest Java long when unbounded."""
        return UNBOUNDED_PERMITS if self.max_permits <= 0 else self.max_permits - self.acquired

    @property
    def overdraft_permits(self) -> int:
        """Permits beyond the limit that a growth was granted and that are still held."""
        return max(0, self.acquired - self.max_permits) if self.overdraft else 0

    def add(self, size: int) -> None:
        """Count a permit."""
        self.acquired += size
        self.high_water = max(self.high_water, self.acquired)

    def end_overdraft(self) -> None:
        """Forget an overdraft once what is acquired is within the limit."""
        if self.unbounded or self.acquired <= self.max_permits:
            self.overdraft = False
