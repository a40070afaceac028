"""Keeps the books of a semaphore: which account holds what, alone or shared, and who is told.

The semaphore counts the sum; here is written down whose it is. The admission policy is told of
every change, because who comes next depends on who holds what; the ledger, if there is one, of
every permit that is taken on and given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.permits.account import Account, SharedHolder

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.admission.fifo import Admission
    from limiter.permits.accounts import Accounts
    from limiter.permits.ledger import PermitRecord
    from limiter.permits.permit import Permit


class Holdings:
    """Who holds what.

    Args:
        accounts: The accounts of the semaphore.
        admission: Its policy.

    Attributes:
        record: Told of every permit, if somebody keeps one.
    """

    def __init__(self, accounts: Accounts, admission: Admission) -> None:
        self._accounts = accounts
        self._admission = admission
        self.record: PermitRecord | None = None

    def took_on(self, permit: Permit, instead_of: Permit | None) -> None:
        """A permit holds something from now on, maybe instead of one that was emptied for it."""
        holder = permit.holder
        if holder is not None:
            holder.took_on(permit)
            self._admission.took_on(permit)
            self.held_changed(holder)
        if self.record is not None:
            self.record.took_on(permit, instead_of)

    def gave_back(self, permit: Permit, size: int) -> None:
        """A permit was emptied of ``size``."""
        holder = permit.holder
        if holder is not None and permit in holder.permits:
            holder.gave_back(permit, size)
            self._admission.gave_back(permit, size)
            self.held_changed(holder)
        if self.record is not None:
            self.record.gave_back(permit, size)

    def held_changed(self, holder: Account | SharedHolder) -> None:
        """Who waits in line may stand elsewhere now."""
        if isinstance(holder, SharedHolder):
            for account in holder.standing():
                self._admission.holds_changed(account)
        elif holder.stands:
            self._admission.holds_changed(holder)

    def forget_if_idle(self, holder: Account | SharedHolder | None) -> None:
        """Drop the account of who neither holds nor waits; the others' shares are larger then."""
        if type(holder) is Account and self._accounts.forget_if_idle(holder):
            self._admission.accounts_changed()

    def join(self, holder: SharedHolder, owner: Hashable) -> None:
        """Count a reference of ``owner``."""
        account = self._accounts.of(owner, holder.namespace)
        was_part = holder.references_of(account) > 0
        settled_anew = holder.joined_by(account)
        if not was_part:
            if holder.waiters:
                self._admission.joined(holder, account)
            self.held_changed(account)
        if settled_anew:
            self.held_changed(holder)

    def share_held(self, permit: Permit) -> SharedHolder:
        """Move a permit from its account to a new holder, of which the account is the one member.

        The account weighs as much as before, so the policy need not be told.

        Raises:
            ValueError: Nobody, or more than one, holds it.
        """
        account = permit.holder
        if type(account) is not Account or permit not in account.permits:
            raise ValueError("only what one owner holds alone can be shared")
        holder = SharedHolder(permit.namespace)
        holder.joined_by(account)
        account.gave_back(permit, permit.size)
        permit.holder = holder
        holder.took_on(permit)
        return holder

    def leave(self, holder: SharedHolder, account: Account, references: int) -> None:
        """Drop references of a member."""
        settled_anew = holder.left_by(account, references)
        if not holder.references_of(account):
            if holder.waiters:
                self._admission.left(holder, account)
            self.held_changed(account)
        if settled_anew:
            self.held_changed(holder)
