"""Owners of permits: one that leaves gives everything back, and some are served differently.

An owner is any hashable value that is given with a request: a connection, a client's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.permits.account import SharedHolder

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.permits.account import Account
    from limiter.permits.permit import Permit
    from limiter.semaphore.bookkeeping import Bookkeeping
    from limiter.semaphore.granting import Granting


class SharedHolders:
    """Permits that several owners hold together, by references."""

    __slots__ = ("_books", "_granting")

    def __init__(self, books: Bookkeeping, granting: Granting) -> None:
        self._books = books
        self._granting = granting

    def new(self, namespace: str = "") -> SharedHolder:
        """Return a holder that owners can join; requests may name it as owner after one has."""
        return SharedHolder(namespace)

    def of(self, permit: Permit) -> SharedHolder:
        """Turn what one owner holds alone into a holder that others can join."""
        return self._books.share(permit)

    def join(self, holder: SharedHolder, owner: Hashable) -> None:
        """Let ``owner`` have a reference to what ``holder`` holds or waits for."""
        self._books.join(holder, owner)
        self._granting.grant_waiters()

    def leave(self, holder: SharedHolder, owner: Hashable) -> None:
        """Drop a reference; the last one of all gives back what is held and waited for."""
        for account in self._books.accounts.members_of(holder, owner)[:1]:
            self.drop(holder, account, 1)
            self._granting.grant_waiters()

    def disband(self, holder: SharedHolder) -> None:
        """Let all owners leave a holder: what it holds is given back."""
        for account in list(holder.members()):
            self.drop(holder, account, holder.references_of(account))
        self._granting.grant_waiters()

    def drop(self, holder: SharedHolder, account: Account, references: int) -> None:
        """Drop references of a member without granting anything yet."""
        self._books.leave(holder, account, references)
        if not holder.references:
            self._granting.give_up(holder)
            # What stood behind a growth of it may go first now.
            self._books.held_changed(account)
        self._books.forget_if_idle(account)


class Owners:
    """Operations on everything that an owner holds and waits for."""

    __slots__ = ("_books", "_granting", "_shared")

    def __init__(self, books: Bookkeeping, granting: Granting, shared: SharedHolders) -> None:
        self._books = books
        self._granting = granting
        self._shared = shared

    def cancel(self, owner: Hashable) -> None:
        """Drop everything ``owner`` waits for and release everything it holds, in this turn.

        What it shares with others stays theirs; what it was the last to share is released.
        """
        accounts = self._books.accounts
        for account in accounts.all_of(owner):
            self._granting.give_up(account)
            for holder in list(account.shared):
                self._shared.drop(holder, account, holder.references_of(account))
            self._books.forget_if_idle(account)
        accounts.forget_owner(owner)
        self._granting.grant_waiters()

    def exempt_from_quota(self, owner: Hashable) -> None:
        """Count each namespace of ``owner`` apart and without a quota: many clients use it.

        For a connection that announces a proxy, until :meth:`cancel`. Policy fair.
        """
        self._books.accounts.stands_for_many(owner)

    def defer(self, *owners: Hashable) -> None:
        """Let all others go before ``owners``, until :meth:`undefer` or :meth:`cancel`.

        For connections that take nothing of what they were sent. Policy fair.
        """
        self._defer(owners, deferred=True)

    def undefer(self, *owners: Hashable) -> None:
        """Let ``owners`` wait like everybody else again."""
        self._defer(owners, deferred=False)

    def _defer(self, owners: tuple[Hashable, ...], *, deferred: bool) -> None:
        for owner in owners:
            for account in self._books.accounts.defer(owner, deferred=deferred):
                self._books.admission.deferred_changed(account)
        self._granting.grant_waiters()

    def pinned_by(self, owner: Hashable) -> int:
        """Return the permits that ``owner`` holds, its part of shared ones included."""
        return sum(account.held for account in self._books.accounts.all_of(owner))
