"""Accounts: the permits of a semaphore that an owner, or several owners, hold or wait for.

An account exists as long as its owner holds or waits for permits. An owner that stands for many
clients (a proxy's connection) has an account in each namespace instead of a single account.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from limiter.errors import raised_anew
from limiter.permits.permit import Holder

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from limiter.clock import TimerHandle
    from limiter.permits.permit import Permit


class Waiter:
    """A request for a permit: granted immediately, waiting, or ended with an error.

    Attributes:
        account: The account whose line holds the request; None under fifo without an owner.
        passed_permits: Permits granted to overtaking requests while the request was next.
    """

    __slots__ = (
        "_callbacks",
        "_future",
        "account",
        "enqueued_at",
        "error",
        "holder",
        "is_cancelled",
        "namespace",
        "passed_permits",
        "permit",
        "previous",
        "previous_size",
        "size",
        "timer",
    )

    def __init__(
        self,
        size: int,
        previous: Permit | None = None,
        holder: Account | SharedHolder | None = None,
        namespace: str = "",
    ) -> None:
        self.size = size
        self.previous = previous
        self.previous_size = 0
        self.holder = holder
        self.namespace = namespace
        self.account: Account | None = None
        self.passed_permits = 0
        self.is_cancelled: Callable[[], bool] | None = None
        self.enqueued_at = 0.0
        self.timer: TimerHandle | None = None
        self.permit: Permit | None = None
        self.error: Exception | None = None
        self._future: asyncio.Future[None] | None = None
        self._callbacks: list[Callable[[], object]] | None = None

    def __repr__(self) -> str:
        return f"<Waiter for {self.needed} of {self.owner!r}>"

    @property
    def done(self) -> bool:
        """True if the request was granted or refused."""
        return self.permit is not None or self.error is not None

    @property
    def owner(self) -> Hashable | None:
        """The owner of the request; None without an owner, or with several."""
        return None if self.holder is None else self.holder.owner

    @property
    def needed(self) -> int:
        """Number of permits still needed: the size, less the size of a permit to be enlarged."""
        return self.size if self.previous is None else self.size - self.previous.size

    def result(self) -> Permit:
        """Return the permit of a done request, or raise its error."""
        if self.error is not None:
            raise raised_anew(self.error)
        if self.permit is None:
            raise RuntimeError("the request is still waiting")
        return self.permit

    def on_done(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` as soon as the request is granted or refused."""
        if self.done:
            callback()
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    async def wait(self) -> None:
        """Wait until the request is granted or refused."""
        if not self.done:
            self._future = asyncio.get_running_loop().create_future()
            await self._future

    def settle(self, permit: Permit | None, error: Exception | None) -> None:
        """Record that the request was granted or refused, and wake its task."""
        self.permit, self.error = permit, error
        if self.timer is not None:
            self.timer.cancel()
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback()


class Place(Protocol):
    """Interface of a line in which an account waits with its oldest request."""

    def add(self, account: Account, waiter: Waiter) -> None:
        """Add an account to the line, or update the request of an account already in it."""

    def discard(self, account: Account) -> None:
        """Remove an account from the line."""


class Account(Holder):
    """An owner's held permits and waiting requests in a semaphore.

    Attributes:
        owner: Its owner; None is for all requests without an owner.
        many_clients: True if the owner stands for many clients, so that no quota applies; also for
            None.
        permits: The permits held alone.
        waiters: All its waiting requests.
        line: The requests waiting to be admitted, oldest first.
        parked_growth: Growth waiting until the account holds less; see ``favoured``.
        deferred: True if its owner reads no responses, so that other waiting requests precede its
            own.
        favoured: The permit that may grow although the account is at its quota. While it is held,
            no other growth of the account exceeds the quota.
        shared: Holders whose permits or requests it shares.
        shared_held: Number of the shared holders with permits.
        held_alone: The sum of ``permits``.
        held_shared: Its parts of shared permits, each correct within a factor of two, so that
            reading the sum is free; ``held`` is exact.
        place: The account's line; set by the admission policy.
    """

    __slots__ = (
        "deferred",
        "favoured",
        "held_alone",
        "held_shared",
        "line",
        "many_clients",
        "parked_growth",
        "place",
        "shared",
        "shared_held",
        "waiters",
    )

    def __init__(self, owner: Hashable | None, namespace: str, *, many_clients: bool) -> None:
        super().__init__(owner, namespace)
        self.many_clients = many_clients
        self.deferred = False
        self.waiters: dict[Waiter, None] = {}
        self.line: OrderedDict[Waiter, None] = OrderedDict()
        self.parked_growth: OrderedDict[Waiter, None] = OrderedDict()
        self.favoured: Permit | None = None
        self.shared: dict[SharedHolder, None] = {}
        self.shared_held = 0
        self.held_alone = 0
        self.held_shared = 0
        self.place: Place | None = None

    def __repr__(self) -> str:
        return f"<Account of {self.owner!r}: {self.held} held, {len(self.waiters)} waiting>"

    @property
    def holds(self) -> bool:
        """True if the account holds permits, alone or shared."""
        return bool(self.permits) or self.shared_held > 0

    @property
    def idle(self) -> bool:
        """True if the account neither holds nor waits for permits."""
        return not (self.permits or self.waiters or self.shared)

    @property
    def held(self) -> int:
        """Number of held permits: the account's own, and its part of shared permits."""
        return self.held_alone + sum(holder.part_of(self) for holder in self.shared)

    @property
    def weight(self) -> int:
        """Approximate number of held permits, for the admission policy; see ``held_shared``."""
        return self.held_alone + self.held_shared

    @property
    def first_in_line(self) -> Waiter | None:
        """The account's next request: to enlarge a permit, otherwise for a new permit."""
        return next(iter(self.parked_growth or self.line), None)

    @property
    def stands(self) -> bool:
        """True if any request of the account waits to be admitted."""
        return bool(self.line or self.parked_growth)

    def took_on(self, permit: Permit) -> None:
        """Count a permit granted to the account."""
        self.permits[permit] = None
        self.held_alone += permit.size

    def gave_back(self, permit: Permit, size: int) -> None:
        """Stop counting a permit that released all of its ``size``."""
        if self.permits.pop(permit, permit) is None:
            self.held_alone -= size


class SharedHolder(Holder):
    """Holder of permits shared by several owners; the last owner to leave releases all permits.

    Made by ``shared.new`` of a semaphore, and passed back as the owner of a request. Its bytes are
    divided among its members by their references. The parts are recomputed when the held permits
    change and whenever the number of references has doubled or halved, so that joining and leaving
    stay cheap regardless of the number of members.

    Attributes:
        held: The permits held together.
        references: The number of references, of all members.
    """

    __slots__ = ("_members", "_parts", "_settled_references", "held", "references", "waiters")

    def __init__(self, namespace: str) -> None:
        super().__init__(None, namespace)
        self.held = 0
        self.waiters: dict[Waiter, None] = {}
        # Ordered, because the first key of a dict is slow to find after many removals before it.
        self._members: OrderedDict[Account, int] = OrderedDict()
        self.references = 0
        self._parts: dict[Account, int] = {}
        self._settled_references = 0

    def __repr__(self) -> str:
        return f"<SharedHolder of {self.references} references in {self.namespace!r}>"

    @property
    def sharers(self) -> int:
        """The number of accounts that are members."""
        return len(self._members)

    def members(self) -> Iterator[Account]:
        """Yield the accounts of the members."""
        yield from self._members

    def standing(self) -> list[Account]:
        """Return the members with waiting requests of their own."""
        return [one for one in self._members if one.line or one.parked_growth]

    def only_member(self) -> Account | None:
        """Return the member if there is exactly one, otherwise None."""
        return next(iter(self._members)) if len(self._members) == 1 else None

    def first_member(self) -> Account | None:
        """Return the first member; None when all have left."""
        return next(iter(self._members), None)

    def references_of(self, account: Account) -> int:
        """Return the number of references of an account; 0 if it is no member."""
        return self._members.get(account, 0)

    def part_of(self, account: Account) -> int:
        """Return a member's part of the held permits."""
        return self.held * self._members[account] // self.references if self.permits else 0

    def joined_by(self, account: Account) -> bool:
        """Add a reference; return True if each member's part of the permits was recomputed."""
        if account not in self._members:
            last = next(reversed(self._members), None)
            self._members[account] = 0
            account.shared[self] = None
            account.shared_held += bool(self.permits)
            if last is not None and last.deferred:
                self.put_deferred_last(account)
        self._members[account] += 1
        self.references += 1
        return self._settle_after(account)

    def left_by(self, account: Account, references: int) -> bool:
        """Drop references; return True if each member's part of the permits was recomputed."""
        self._members[account] -= references
        self.references -= references
        settled = self._settle_after(account)
        if not self._members[account]:
            del self._members[account]
            del account.shared[self]
            account.shared_held -= bool(self.permits)
            if account.favoured in self.permits:
                account.favoured = None  # The permit is not shared any more: another growth may go.
        return settled

    def put_deferred_last(self, account: Account) -> None:
        """Move a deferred member to the end of the members, and any other member to the front."""
        self._members.move_to_end(account, last=account.deferred)

    def took_on(self, permit: Permit) -> None:
        """Count a permit granted to the holder."""
        if not self.permits:
            for account in self._members:
                account.shared_held += 1
        self.permits[permit] = None
        self.held += permit.size
        self._settle_all()

    def gave_back(self, permit: Permit, size: int) -> None:
        """Stop counting a permit that released all of its ``size``."""
        if permit in self.permits:
            del self.permits[permit]
            self.held -= size
            if not self.permits:
                for account in self._members:
                    account.shared_held -= 1
            self._settle_all()

    def _settle_after(self, account: Account) -> bool:
        if (
            self.permits
            and not self._settled_references <= 2 * self.references <= 4 * self._settled_references
        ):
            self._settle_all()
            return True
        self._settle(account)
        return False

    def _settle_all(self) -> None:
        self._settled_references = self.references
        for account in self._members:
            self._settle(account)

    def _settle(self, account: Account) -> None:
        if not self.held and not self._parts:
            return
        part = self.part_of(account) if self.references else 0
        account.held_shared += part - self._parts.get(account, 0)
        if part:
            self._parts[account] = part
        else:
            self._parts.pop(account, None)
