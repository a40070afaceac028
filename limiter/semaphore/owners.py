"""Operations on owners of permits: cancelling, sharing, exempting and deferring them.

An owner is any hashable value passed with a request: a connection, a client's name.
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
    """Operations on permits that several owners hold together."""

    __slots__ = ("_books", "_granting")

    def __init__(self, books: Bookkeeping, granting: Granting) -> None:
        self._books = books
        self._granting = granting

    def new(self, namespace: str = "") -> SharedHolder:
        """Create a shared holder, which requests may name as owner after the first join."""
        return SharedHolder(namespace)

    def of(self, permit: Permit) -> SharedHolder:
        """Convert a permit held by a single owner to a holder that owners can join."""
        return self._books.share(permit)

    def join(self, holder: SharedHolder, owner: Hashable) -> None:
        """Add a reference of ``owner`` to the permits and requests of ``holder``."""
        self._books.join(holder, owner)
        self._granting.grant_waiters()

    def leave(self, holder: SharedHolder, owner: Hashable) -> None:
        """Drop a reference of ``owner``; the last one releases permits and cancels requests."""
        for account in self._books.accounts.members_of(holder, owner)[:1]:
            self.drop(holder, account, 1)
            self._granting.grant_waiters()

    def disband(self, holder: SharedHolder) -> None:
        """Remove all owners from a holder, which releases its permits."""
        for account in list(holder.members()):
            self.drop(holder, account, holder.references_of(account))
        self._granting.grant_waiters()

    def drop(self, holder: SharedHolder, account: Account, references: int) -> None:
        """Drop references of a member, without granting the released permits yet."""
        self._books.leave(holder, account, references)
        if not holder.references:
            self._granting.give_up(holder)
            # Requests behind a growth of the holder may go first now.
            self._books.held_changed(account)
        self._books.forget_if_idle(account)


class Owners:
    """Operations on all permits and requests of an owner."""

    __slots__ = ("_books", "_granting", "_shared")

    def __init__(self, books: Bookkeeping, granting: Granting, shared: SharedHolders) -> None:
        self._books = books
        self._granting = granting
        self._shared = shared

    def cancel(self, owner: Hashable) -> None:
        """Cancel the requests of ``owner`` and release its permits immediately.

        Shared permits stay with the remaining members; the last member's are released.
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
        """Exempt from quotas an owner that stands for many clients; count each namespace apart.

        Used for a connection that announces a proxy, until :meth:`cancel`. Policy fifo ignores it.
        """
        self._books.accounts.stands_for_many(owner)

    def defer(self, *owners: Hashable) -> None:
        """Serve all other owners before ``owners``, until :meth:`undefer` or :meth:`cancel`.

        Used for connections that do not read their responses. Policy fifo ignores it.
        """
        self._defer(owners, deferred=True)

    def undefer(self, *owners: Hashable) -> None:
        """Serve ``owners`` in normal order again."""
        self._defer(owners, deferred=False)

    def _defer(self, owners: tuple[Hashable, ...], *, deferred: bool) -> None:
        for owner in owners:
            for account in self._books.accounts.defer(owner, deferred=deferred):
                self._books.admission.deferred_changed(account)
        self._granting.grant_waiters()

    def pinned_by(self, owner: Hashable) -> int:
        """Return the number of permits held by ``owner``, with its part of shared permits."""
        return sum(account.held for account in self._books.accounts.all_of(owner))
