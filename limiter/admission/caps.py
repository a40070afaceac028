"""Upper limits (caps) on the permits held by a connection, namespace or tenant."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from limiter.admission.fair_queue import LeastFirst, tenant_of
from limiter.errors import LimitScope, PermitTooLargeError

if TYPE_CHECKING:
    from limiter.permits.account import Account, Waiter
    from limiter.permits.permit import Permit


@dataclass(frozen=True, slots=True)
class AdmissionCaps:
    """Maximum permits (bytes) that a connection, namespace or tenant may hold; 0 is unlimited.

    No single permit is ever larger than a cap. The sum of permits is bounded for new work only:
    admitted work may grow beyond a cap, because blocking the growth would block memory already
    held.

    Source: PIP-442 names such limits as future work.
    """

    per_connection: int = 0
    per_namespace: int = 0
    per_tenant: int = 0


class OverQuota:
    """Accounts whose next request exceeds their quota of permits, and therefore waits."""

    def __init__(self) -> None:
        self._by_need: LeastFirst[Account] = LeastFirst()

    def __len__(self) -> int:
        return len(self._by_need)

    def add(self, account: Account, waiter: Waiter) -> None:
        """Let an account wait until its quota is large enough for the request ``waiter``."""
        self._by_need.put(account, account.weight + waiter.needed)

    def discard(self, account: Account) -> None:
        """Remove an account that no longer waits for a larger quota."""
        self._by_need.discard(account)

    def first_within(self, quota: int) -> Account | None:
        """Return a waiting account whose next request fits a quota of ``quota``, or None."""
        account = self._by_need.first()
        return account if account is not None and self._by_need.value_of(account) <= quota else None


class CapGroup:
    """The accounts that wait at one cap, because their next request would exceed it."""

    def __init__(self) -> None:
        self.held = 0
        self.parked: OrderedDict[Account, None] = OrderedDict()

    def add(self, account: Account, _: Waiter) -> None:
        """Let an account wait at the cap; an account that waits already keeps its position."""
        self.parked[account] = None

    def discard(self, account: Account) -> None:
        """Remove an account that no longer waits at the cap."""
        self.parked.pop(account, None)


class Caps:
    """Permits held in each capped namespace and tenant, and accounts waiting at full caps.

    Bound: a group for each namespace and tenant with held permits or parked accounts; no groups
    without caps.

    Attributes:
        any: True if any cap is set.
    """

    def __init__(self, caps: AdmissionCaps) -> None:
        self.caps = caps
        self._groups: dict[tuple[LimitScope, str], CapGroup] = {}
        levels = {LimitScope.NAMESPACE: caps.per_namespace, LimitScope.TENANT: caps.per_tenant}
        self._levels = [(scope, cap) for scope, cap in levels.items() if cap > 0]
        self.any = bool(self._levels) or caps.per_connection > 0

    def validate(self, size: int, *, many_clients: bool) -> None:
        """Raise an error if a request's size alone exceeds a cap.

        Raises:
            PermitTooLargeError: ``size`` exceeds a cap, which the error names.
        """
        exceeded = self.exceeded(size, many_clients=many_clients)
        if exceeded is not None:
            scope, cap = exceeded
            raise PermitTooLargeError(size, cap, scope)

    def exceeded(self, size: int, *, many_clients: bool) -> tuple[LimitScope, int] | None:
        """Return the scope and size of a cap smaller than ``size``; None without such a cap."""
        if 0 < self.caps.per_connection < size and not many_clients:
            return LimitScope.CONNECTION, self.caps.per_connection
        return next(((scope, cap) for scope, cap in self._levels if size > cap), None)

    def connection_allows(self, account: Account, size: int) -> bool:
        """Return True if the cap per connection allows an account ``size`` more permits."""
        cap = self.caps.per_connection
        return cap <= 0 or account.many_clients or account.weight + size <= cap

    def blocking(self, namespace: str, size: int) -> CapGroup | None:
        """Return the namespace or tenant group whose cap blocks ``size`` more permits, or None."""
        for scope, cap in self._levels:
            group = self._groups.get((scope, _name(scope, namespace)))
            if group is not None and group.held + size > cap:
                return group
        return None

    def took_on(self, permit: Permit) -> None:
        """Count a granted permit for its namespace and tenant."""
        for scope, _ in self._levels:
            key = (scope, _name(scope, permit.namespace))
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = CapGroup()
            group.held += permit.size

    def gave_back(self, permit: Permit, size: int) -> None:
        """Subtract ``size`` released permits from the permit's namespace and tenant."""
        for scope, _ in self._levels:
            group = self._groups.get((scope, _name(scope, permit.namespace)))
            if group is not None:  # Permits of size 0 keep no group alive.
                group.held -= size

    def let_go(self, namespace: str) -> list[Account]:
        """Return accounts that wait at the caps of a namespace and whose next requests may fit."""
        freed: list[Account] = []
        for scope, cap in self._levels:
            key = (scope, _name(scope, namespace))
            group = self._groups.get(key)
            if group is None:
                continue
            fitting = _within(group, cap - group.held)
            if not group.held and len(fitting) == len(group.parked):
                del self._groups[key]
            freed += fitting
        return freed


def _name(scope: LimitScope, namespace: str) -> str:
    return namespace if scope is LimitScope.NAMESPACE else tenant_of(namespace)


def _within(group: CapGroup, room: int) -> list[Account]:
    """Return a group's longest-waiting accounts whose next requests fit together in ``room``."""
    fitting = []
    for account in group.parked:
        waiter = account.first_in_line
        room -= waiter.size if waiter is not None else 0
        if room < 0:
            break
        fitting.append(account)
    return fitting
