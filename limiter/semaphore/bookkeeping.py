"""Counts of a semaphore's held permits: in total, by account, and shared.

The admission policy is notified of every change, because the order of requests depends on the
holders; the ledger, if any, of every acquired and released permit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.permits.account import Account, SharedHolder

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limiter.admission.policy import Admission
    from limiter.permits.accounts import Accounts
    from limiter.permits.ledger import PermitRecord
    from limiter.permits.permit import Budget, Holder, Permit


class Bookkeeping:
    """Counts of a semaphore's held permits, by owner and in total.

    Attributes:
        record: Receiver of every permit's events, if any.
        skips_anonymous: True if a permit without an owner changes nothing but the sum.
    """

    def __init__(self, budget: Budget, accounts: Accounts, admission: Admission) -> None:
        self.accounts = accounts
        self.skips_anonymous = not admission.counts_anonymous
        self.budget = budget
        self.admission = admission
        self.record: PermitRecord | None = None

    def record_with(self, record: PermitRecord) -> None:
        """Set the object that records the events of all permits."""
        self.record = record
        self.skips_anonymous = False

    def holder_of(self, owner: Hashable | None, namespace: str) -> Account | SharedHolder | None:
        """Return the account or shared holder of an owner.

        None if a request without an owner needs no account.
        """
        if type(owner) is SharedHolder:
            return owner
        if owner is None and not self.admission.counts_anonymous:
            return None
        return self.accounts.of(owner, namespace)

    # -- permits ------------------------------------------------------------------------------

    def fill(self, permit: Permit, instead_of: Permit | None = None) -> None:
        """Count a granted permit, possibly in exchange for an emptied permit."""
        self.budget.add(permit.size)
        self.assign(permit, instead_of)

    def assign(self, permit: Permit, instead_of: Permit | None = None) -> None:
        """Count a permit for its holder, but not in the total, which includes it already."""
        holder = permit.holder
        if holder is not None:
            holder.took_on(permit)
            self.admission.took_on(permit)
            self.held_changed(holder)
        if self.record is not None:
            self.record.took_on(permit, instead_of)

    def empty(self, permit: Permit) -> int:
        """Set a permit's size to 0 and return the former size; 0 if it was empty already."""
        if not permit.counted:
            return 0
        size, permit.size = permit.size, 0
        self.budget.acquired -= size
        holder = permit.holder
        if holder is not None and permit in holder.permits:
            holder.gave_back(permit, size)
            self.admission.gave_back(permit, size)
            self.held_changed(holder)
        if self.record is not None:
            self.record.gave_back(permit, size)
        return size

    def release(self, permit: Permit) -> None:
        """Release a permit, and drop its account if the account becomes idle."""
        self.empty(permit)
        self.budget.end_overdraft()
        self.forget_if_idle(permit.holder)

    # -- holders ------------------------------------------------------------------------------

    def held_changed(self, holder: Holder) -> None:
        """Notify the policy of a holder's changed permits, as waiting accounts may change lines."""
        if type(holder) is Account:
            if holder.stands:
                self.admission.holds_changed(holder)
        elif type(holder) is SharedHolder:
            for account in holder.standing():
                self.admission.holds_changed(account)

    def forget_if_idle(self, holder: Holder | None) -> None:
        """Drop an idle account, which raises the quotas of the remaining accounts."""
        if type(holder) is Account and self.accounts.forget_if_idle(holder):
            self.admission.accounts_changed()

    def join(self, holder: SharedHolder, owner: Hashable) -> None:
        """Add a reference of ``owner`` to a shared holder."""
        account = self.accounts.of(owner, holder.namespace)
        was_part = holder.references_of(account) > 0
        settled_anew = holder.joined_by(account)
        if not was_part:
            if holder.waiters:
                self.admission.joined(holder, account)
            self.held_changed(account)
        if settled_anew:
            self.held_changed(holder)

    def leave(self, holder: SharedHolder, account: Account, references: int) -> None:
        """Drop references of a shared holder's member."""
        settled_anew = holder.left_by(account, references)
        if not holder.references_of(account):
            if holder.waiters:
                self.admission.left(holder, account)
            self.held_changed(account)
        if settled_anew:
            self.held_changed(holder)

    def share(self, permit: Permit) -> SharedHolder:
        """Move a permit from its account to a new holder with the account as its only member.

        The account's weight does not change, so the policy is not notified.

        Raises:
            ValueError: The permit has no owner, or several.
        """
        account = permit.holder
        if type(account) is not Account or permit not in account.permits:
            raise ValueError("only a permit with a single owner can be shared")
        holder = SharedHolder(permit.namespace)
        holder.joined_by(account)
        account.gave_back(permit, permit.size)
        permit.holder = holder
        holder.took_on(permit)
        return holder
