"""The rules by which waiting requests are admitted, as configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

OVERDRAFT_DIVISOR = 10
"""Without another figure, an overdraft may be a tenth of the limit."""


class AdmissionPolicy(Enum):
    """The values of ``floodgateAdmissionPolicy``."""

    FIFO = "fifo"
    """As shipped: strict order, growth waits at the tail, the head holds up all behind it."""
    FAIR = "fair"
    """Growth of admitted work first, then byte-weighted turns; see limiter.admission.fair."""


@dataclass(frozen=True, slots=True)
class AdmissionCaps:
    """The most that one connection, namespace or tenant may hold; 0 is unlimited.

    Units: permits (bytes). No one permit is ever larger. Together they bound what is newly
    admitted: work that was admitted may grow until the sum exceeds a cap, because holding it up
    would hold up what it already has.

    Source: PIP-442 names such limits as future work.
    """

    per_connection: int = 0
    per_namespace: int = 0
    per_tenant: int = 0


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """The order in which a semaphore grants requests, and its bounds.

    Attributes:
        policy: In which order.
        overdraft_max_permits: How far beyond the limit one growth may go to end a stall, when
            every holder waits to grow; None is a tenth of the limit. Policy fair only.
        caps: Limits of each connection, namespace and tenant. Policy fair only.
    """

    policy: AdmissionPolicy = AdmissionPolicy.FIFO
    overdraft_max_permits: int | None = None
    caps: AdmissionCaps = field(default_factory=AdmissionCaps)

    def overdraft_max(self, limit: int) -> int:
        """Return the bound of an overdraft beyond ``limit``."""
        if self.overdraft_max_permits is not None:
            return self.overdraft_max_permits
        return max(1, limit // OVERDRAFT_DIVISOR)
