"""Keeps the books of who holds what: an account for each owner, and holdings that several share.

An account exists as long as its owner holds or waits for something. An owner that stands for
many clients (a proxy's connection) has an account in each namespace instead of a single one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from limiter.permit import Permit, Waiter


MAX_SPARE = 1_000
"""Accounts of owners that hold nothing, kept because making one is most of what a permit costs."""


class Place(Protocol):
    """A line that an account can stand in with its oldest request."""

    def add(self, account: Account, waiter: Waiter) -> None:
        """Let it stand here."""

    def replace(self, account: Account, waiter: Waiter) -> None:
        """It still stands here, with another request."""

    def discard(self, account: Account) -> None:
        """It stands here no more."""


class Account:
    """Counts what one owner holds and waits for in one semaphore.

    Attributes:
        owner: Who it is; None are all who do not say.
        many_clients: Whether the owner stands for many clients, so that no share applies; who
            does not say is taken for many.
        permits: What it holds alone.
        waiters: All its requests that wait.
        line: Those of them that wait to be admitted, the oldest first.
        parked_growth: Those that wait to grow until the account holds less; see ``favoured``.
        deferred: Its owner takes nothing of what it was sent: others who wait go before it.
        favoured: The permit that may grow although the account holds its share. While it holds
            something, no other growth of the account goes beyond the share.
        shared: What it holds or waits for together with others.
        shared_held: How many of those hold something.
        held_alone: The sum of ``permits``.
        held_shared: Its parts of what it shares, each right within a factor of two, so that
            it costs nothing to know; ``held`` is exact.
        place: Where the account stands in line; the admission policy's.
    """

    __slots__ = (
        "deferred",
        "favoured",
        "held_alone",
        "held_shared",
        "line",
        "many_clients",
        "namespace",
        "owner",
        "parked_growth",
        "permits",
        "place",
        "shared",
        "shared_held",
        "waiters",
    )

    def __init__(self, owner: Hashable | None, namespace: str, *, many_clients: bool) -> None:
        self.owner = owner
        self.namespace = namespace
        self.many_clients = many_clients
        self.deferred = False
        self.permits: dict[Permit, None] = {}
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
        """True if it holds anything, alone or with others."""
        return bool(self.permits) or self.shared_held > 0

    @property
    def held(self) -> int:
        """The permits it holds: its own, and its part of what it shares."""
        return self.held_alone + sum(holder.part_of(self) for holder in self.shared)

    @property
    def weight(self) -> int:
        """The permits it holds, as the admission policy counts them; see ``held_shared``."""
        return self.held_alone + self.held_shared

    @property
    def first_in_line(self) -> Waiter | None:
        """The request that goes next, when the account may: growth before new work."""
        return next(iter(self.parked_growth or self.line), None)

    @property
    def stands(self) -> bool:
        """True if it has a request that waits for its turn."""
        return bool(self.line or self.parked_growth)

    def took_on(self, permit: Permit) -> None:
        """Count a permit that was granted."""
        self.permits[permit] = None
        self.held_alone += permit.size

    def gave_back(self, permit: Permit, size: int) -> None:
        """Count a permit that was emptied of ``size``."""
        if self.permits.pop(permit, permit) is None:
            self.held_alone -= size

    def members(self) -> Iterator[Account]:
        """Yield whom this holder consists of: itself."""
        yield self


class SharedHolder:
    """One holder that several owners are part of: the last who leaves gives everything back.

    Made by ``share`` of a semaphore and given to it as the owner of a request. Its bytes are
    divided among its members by their references. Their parts are settled anew when what is held
    changes and whenever the number of references has doubled or halved, so that joining and
    leaving stay cheap however many share.

    Attributes:
        held: What is held together.
    """

    __slots__ = (
        "_parts",
        "_references",
        "_settled_total",
        "_total",
        "held",
        "namespace",
        "permits",
        "waiters",
    )

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.held = 0
        self.permits: dict[Permit, None] = {}
        self.waiters: dict[Waiter, None] = {}
        # Ordered, because the first of a dict is slow to find when many have left before it.
        self._references: OrderedDict[Account, int] = OrderedDict()
        self._total = 0
        self._parts: dict[Account, int] = {}
        self._settled_total = 0

    def __repr__(self) -> str:
        return f"<SharedHolder of {self._total} references in {self.namespace!r}>"

    @property
    def references(self) -> int:
        """The number of references, of all members."""
        return self._total

    @property
    def sharers(self) -> int:
        """The number of owners that are part of it."""
        return len(self._references)

    def members(self) -> Iterator[Account]:
        """Yield the accounts that are part of it."""
        yield from self._references

    def standing(self) -> list[Account]:
        """Return the members that have requests of their own that wait."""
        return [one for one in self._references if one.line or one.parked_growth]

    def only_member(self) -> Account | None:
        """Return the one member; None when there are more."""
        return next(iter(self._references)) if len(self._references) == 1 else None

    def first_member(self) -> Account | None:
        """Return a member; None when all have left."""
        return next(iter(self._references), None)

    def references_of(self, account: Account) -> int:
        """Return how many references an account has."""
        return self._references.get(account, 0)

    def part_of(self, account: Account) -> int:
        """Return what a member holds of it."""
        return self.held * self._references[account] // self._total if self.permits else 0

    def joined_by(self, account: Account) -> bool:
        """Add a reference; true when the parts of all members were settled anew."""
        if account not in self._references:
            last = next(reversed(self._references), None)
            self._references[account] = 0
            account.shared[self] = None
            account.shared_held += bool(self.permits)
            if last is not None and last.deferred:
                self.put_deferred_last(account)
        self._references[account] += 1
        self._total += 1
        return self._settle_after(account)

    def left_by(self, account: Account, references: int) -> bool:
        """Drop references of a member; true when the parts of all were settled anew."""
        self._references[account] -= references
        self._total -= references
        settled = self._settle_after(account)
        if not self._references[account]:
            del self._references[account]
            del account.shared[self]
            account.shared_held -= bool(self.permits)
        return settled

    def put_deferred_last(self, account: Account) -> None:
        """Let a member be found before those whose peers take nothing, or after the others."""
        self._references.move_to_end(account, last=account.deferred)

    def took_on(self, permit: Permit) -> None:
        """Count a permit that was granted."""
        if not self.permits:
            for account in self._references:
                account.shared_held += 1
        self.permits[permit] = None
        self.held += permit.size
        self._settle_all()

    def gave_back(self, permit: Permit, size: int) -> None:
        """Count a permit that was emptied of ``size``."""
        if permit in self.permits:
            del self.permits[permit]
            self.held -= size
            if not self.permits:
                for account in self._references:
                    account.shared_held -= 1
            self._settle_all()

    def _settle_after(self, account: Account) -> bool:
        if self.permits and not self._settled_total <= 2 * self._total <= 4 * self._settled_total:
            self._settle_all()
            return True
        self._settle(account)
        return False

    def _settle_all(self) -> None:
        self._settled_total = self._total
        for account in self._references:
            self._settle(account)

    def _settle(self, account: Account) -> None:
        if not self.held and not self._parts:
            return
        part = self.part_of(account) if self._total else 0
        account.held_shared += part - self._parts.get(account, 0)
        if part:
            self._parts[account] = part
        else:
            self._parts.pop(account, None)


class Accounts:
    """The accounts of one semaphore.

    Bound: one an owner that holds or waits for something (one a namespace of it, where the
    owner stands for many clients); owners that do are forgotten by ``forget_owner``. At most
    MAX_SPARE more are kept for owners that come again.

    Attributes:
        deferred_owners: Whose accounts are deferred, those to come as well.
    """

    def __init__(self) -> None:
        self._spare: dict[Hashable, Account] = {}
        self._accounts: dict[Hashable, Account] = {}
        # Who does not say who he is may be many, too.
        self._many_clients: dict[Hashable, dict[Hashable, Account]] = {None: {}}
        self._of_many = 0
        self.deferred_owners: set[Hashable] = set()

    def __len__(self) -> int:
        return len(self._accounts) + self._of_many

    def __iter__(self) -> Iterator[Account]:
        yield from self._accounts.values()
        for accounts in self._many_clients.values():
            yield from accounts.values()

    def of(self, owner: Hashable | None, namespace: str) -> Account:
        """Return the account of an owner, or in a namespace of one that stands for many."""
        many = self._many_clients.get(owner)
        if many is not None:
            account = many.get(namespace)
            if account is None:
                account = many[namespace] = Account(owner, namespace, many_clients=True)
                account.deferred = owner in self.deferred_owners
                self._of_many += 1
            return account
        account = self._accounts.get(owner)
        if account is None:
            account = self._spare.pop(owner, None) or Account(owner, "", many_clients=False)
            account.deferred = owner in self.deferred_owners
            self._accounts[owner] = account
        return account

    def members_of(self, holder: SharedHolder, owner: Hashable) -> list[Account]:
        """Return the account by which an owner is part of a holder, if it is."""
        many = self._many_clients.get(owner, {})
        found = (self._accounts.get(owner), many.get(holder.namespace))
        return [one for one in found if one is not None and holder.references_of(one)]

    def all_of(self, owner: Hashable) -> list[Account]:
        """Return every account of an owner."""
        own = self._accounts.get(owner)
        many = self._many_clients.get(owner)
        return [*([own] if own is not None else []), *(many.values() if many else ())]

    def stands_for_many(self, owner: Hashable) -> None:
        """Give an owner an account in each namespace from now on."""
        self._many_clients.setdefault(owner, {})

    def defer(self, owner: Hashable, *, deferred: bool) -> list[Account]:
        """Let all accounts of an owner be deferred, or not; return those there are now."""
        if deferred:
            self.deferred_owners.add(owner)
        else:
            self.deferred_owners.discard(owner)
        accounts = self.all_of(owner)
        for account in accounts:
            account.deferred = deferred
        return accounts

    def forget_if_idle(self, account: Account) -> bool:
        """Drop an account that neither holds nor waits; true when it was dropped.

        A permit may outlive its account: the owner may have another one by now, which stays.
        """
        if account.permits or account.waiters or account.shared:
            return False
        if account.many_clients:
            return self._forget_one_of_many(account)
        if self._accounts.get(account.owner) is not account:
            return False
        del self._accounts[account.owner]
        if len(self._spare) < MAX_SPARE:
            self._spare[account.owner] = account
        return True

    def _forget_one_of_many(self, account: Account) -> bool:
        accounts = self._many_clients.get(account.owner, {})
        if accounts.get(account.namespace) is not account:
            return False
        del accounts[account.namespace]
        self._of_many -= 1
        return True

    def forget_owner(self, owner: Hashable) -> None:
        """Forget an owner that has left, and that it stood for many clients."""
        self._spare.pop(owner, None)
        self.deferred_owners.discard(owner)
        if owner is not None and not self._many_clients.get(owner):
            self._many_clients.pop(owner, None)
