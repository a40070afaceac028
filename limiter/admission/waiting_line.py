"""Lines of accounts awaiting service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.admission.fair_queue import FairQueue, LeastFirst

if TYPE_CHECKING:
    from limiter.permits.account import Account, Waiter


class WaitingLine:
    """Admissible accounts, in round-robin order and by request size."""

    def __init__(self) -> None:
        self._turns: FairQueue[Account] = FairQueue()
        self._by_size: LeastFirst[Account] = LeastFirst()
        self._namespaces: dict[Account, str] = {}

    def __len__(self) -> int:
        return len(self._namespaces)

    def add(self, account: Account, waiter: Waiter) -> None:
        """See Place: earlier service of the account still counts."""
        before, now = self._namespaces.get(account), waiter.namespace
        if before != now:
            self._namespaces[account] = now
            self._turns.add(now, account)
            if before is not None:
                self._turns.discard(before, account)
        self._by_size.put(account, waiter.needed)

    def discard(self, account: Account) -> None:
        """See Place."""
        self._turns.discard(self._namespaces.pop(account), account)
        self._by_size.discard(account)

    def served(self, account: Account, size: int) -> None:
        """Charge a waiting account for its service."""
        self._turns.served(self._namespaces[account], account, size)

    def first(self) -> Account | None:
        """Return the next account."""
        return self._turns.first()

    def smallest(self) -> Account | None:
        """Return the account with the smallest request."""
        return self._by_size.first()
