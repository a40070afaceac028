"""Lines of accounts that wait for their turn, and the place of those at their own cap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.admission.fair_queue import FairQueue, LeastFirst

if TYPE_CHECKING:
    from limiter.permits.account import Account, Waiter


class WaitingLine:
    """Accounts that could be admitted: by turns, and by the size of what they ask for."""

    def __init__(self) -> None:
        self._turns: FairQueue[Account] = FairQueue()
        self._by_size: LeastFirst[Account] = LeastFirst()
        self._namespaces: dict[Account, str] = {}

    def __len__(self) -> int:
        return len(self._namespaces)

    def add(self, account: Account, waiter: Waiter) -> None:
        """See Place."""
        self._namespaces[account] = waiter.namespace
        self._turns.add(waiter.namespace, account)
        self._by_size.put(account, waiter.needed)

    def replace(self, account: Account, waiter: Waiter) -> None:
        """See Place: what the account was served still counts."""
        before, now = self._namespaces[account], waiter.namespace
        if before != now:
            self._namespaces[account] = now
            self._turns.add(now, account)
            self._turns.discard(before, account)
        self._by_size.put(account, waiter.needed)

    def discard(self, account: Account) -> None:
        """See Place."""
        self._turns.discard(self._namespaces.pop(account), account)
        self._by_size.discard(account)

    def served(self, account: Account, size: int) -> None:
        """Charge an account that is still standing here for its turn."""
        self._turns.served(self._namespaces[account], account, size)

    def first(self) -> Account | None:
        """Return whose turn it is."""
        return self._turns.first()

    def smallest(self) -> Account | None:
        """Return the account that asks for least."""
        return self._by_size.first()


class OverOwnCap:
    """Accounts that wait for themselves: the cap of a connection is reached."""

    def add(self, account: Account, waiter: Waiter) -> None:
        """Nothing to keep: the account is looked at whenever it gives something back."""

    def replace(self, account: Account, waiter: Waiter) -> None:
        """Nothing was kept."""

    def discard(self, account: Account) -> None:
        """Nothing was kept."""
