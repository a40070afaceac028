"""The tests' own books of a semaphore: who waits, who holds what, how each request must end.

Nothing here asks the implementation who is next or who holds how much: it is told what was asked
and what was answered, and keeps sums of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from limiter.permits.account import SharedHolder, Waiter
from limiter.permits.permit import AcquireOutcome, Permit

AccountKey = tuple[str | None, str]


@dataclass(eq=False)
class Sharing:
    """What several owners share; ``references`` by account."""

    holder: SharedHolder
    namespace: str
    references: Counter[AccountKey] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All references."""
        return sum(self.references.values())


@dataclass(eq=False)
class Held:
    """A permit that was granted and not given back."""

    size: int
    account: AccountKey | None
    sharing: Sharing | None
    namespace: str


@dataclass(eq=False)
class Ask:
    """A request that was made; ``grows`` is the permit it grows, None for new work."""

    size: int
    account: AccountKey | None
    sharing: Sharing | None
    namespace: str
    grows: Permit | None
    asked_at: float
    timeout_seconds: float
    number: int = field(default_factory=count().__next__)
    shrinks: bool = False
    passed_growth: int = 0
    passed_in_turn: int = 0
    passed_at_most: int = 0

    @property
    def tenant(self) -> str:
        """The tenant, with the slash behind it."""
        return self.namespace.partition("/")[0] + "/"

    def asked_before(self, other: Ask) -> bool:
        """Whether this one has waited for longer."""
        return self.number < other.number


class Books:
    """Who waits and who holds, in the order of asking."""

    def __init__(self) -> None:
        self.held: dict[Permit, Held] = {}
        self.asks: dict[Waiter, Ask] = {}
        # Those that are being made or granted: they may be in the queue, or were until now.
        self.asking: list[Ask] = []
        self.sharings: list[Sharing] = []
        self.ended: Counter[AcquireOutcome] = Counter()

    # -- sums ---------------------------------------------------------------------------------

    @property
    def acquired(self) -> int:
        """The sum of what is held."""
        return sum(one.size for one in self.held.values())

    def needed(self, ask: Ask) -> int:
        """What is missing."""
        return ask.size - self.size_of(ask.grows)

    def size_of(self, permit: Permit | None) -> int:
        """What a permit holds; 0 when it was given back."""
        held = None if permit is None else self.held.get(permit)
        return 0 if held is None else held.size

    def alone(self, account: AccountKey) -> int:
        """What an account holds alone."""
        return sum(one.size for one in self.held.values() if one.account == account)

    def parts(self, account: AccountKey) -> int:
        """The parts of an account in what it shares."""
        return sum(
            self.held_by(one) * one.references[account] // one.total
            for one in self.sharings
            if one.references[account]
        )

    def held_by(self, sharing: Sharing) -> int:
        """What is shared."""
        return sum(one.size for one in self.held.values() if one.sharing is sharing)

    def in_group(self, prefix: str) -> int:
        """What a namespace or a tenant (``tenant/``) holds."""
        return sum(one.size for one in self.held.values() if one.namespace.startswith(prefix))

    def holds(self, account: AccountKey) -> bool:
        """Whether an account has any permit, alone or with others."""
        return any(
            one.account == account
            or (one.sharing is not None and one.sharing.references[account] > 0)
            for one in self.held.values()
        )

    # -- leaving ------------------------------------------------------------------------------

    def leave(self, sharing: Sharing, account: AccountKey | None) -> None:
        """Drop a reference; with the last one goes what is shared."""
        if account is not None and sharing.references[account]:
            sharing.references[account] -= 1
        if not sharing.total:
            self._drop(lambda one: one.sharing is sharing)

    def forget(self, owner: str) -> None:
        """An owner has left with everything that is its own."""
        for sharing in self.sharings:
            for account in [one for one in sharing.references if one[0] == owner]:
                while sharing.references[account]:
                    self.leave(sharing, account)
        self._drop(lambda one: one.account is not None and one.account[0] == owner)

    def _drop(self, belongs: Callable[[Held], bool]) -> None:
        for permit in [permit for permit, one in self.held.items() if belongs(one)]:
            del self.held[permit]

    # -- who ----------------------------------------------------------------------------------

    def accounts(self) -> set[AccountKey]:
        """Everybody who holds, waits or has a part in something."""
        found = {one.account for one in self.held.values()}
        found |= {one.account for one in self.waiting()}
        for sharing in self.sharings:
            found |= {account for account, count in sharing.references.items() if count}
        return {one for one in found if one is not None}

    def waiting(self) -> list[Ask]:
        """Who waits, the oldest first."""
        asks = {*self.asks.values(), *(one for one in self.asking if not one.shrinks)}
        return sorted(asks, key=lambda one: one.number)

    def growths(self) -> list[Ask]:
        """Growth that waits, the oldest first."""
        return [one for one in self.waiting() if one.grows is not None]

    def new_work(self) -> list[Ask]:
        """New requests that wait, the oldest first."""
        return [one for one in self.waiting() if one.grows is None]

    def all_wait_to_grow(self) -> bool:
        """Whether there is something held, and all of it waits to hold more."""
        holding = [permit for permit, one in self.held.items() if one.size]
        growing = [one.grows for one in self.growths()]
        return bool(holding) and all(permit in growing for permit in holding)
