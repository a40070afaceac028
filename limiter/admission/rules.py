"""The rules by which waiting requests are admitted, as configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from limiter.admission.caps import AdmissionCaps
from limiter.admission.fair import FairAdmission
from limiter.admission.fifo import FifoAdmission

if TYPE_CHECKING:
    from limiter.admission.policy import Admission

OVERDRAFT_DIVISOR = 10
"""Without another figure, an overdraft may be a tenth of the limit."""


class AdmissionPolicy(Enum):
    """The policies that are shipped, by the words of ``floodgateAdmissionPolicy``."""

    FIFO = "fifo"
    """As shipped: strict order, growth waits at the tail, the head holds up all behind it."""
    FAIR = "fair"
    """Growth of admitted work first, then byte-weighted turns; see limiter.admission.fair."""


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """The order in which a semaphore grants requests, and its bounds.

    Attributes:
        policy: In which order: one that is shipped, or a class of one's own.
        overdraft_max_permits: How far beyond the limit one growth may go to end a stall, when
            every holder waits to grow; None is a tenth of the limit. Fifo ends none.
        caps: Limits of each connection, namespace and tenant. Fifo does not look at them.
    """

    policy: AdmissionPolicy | type[Admission] = AdmissionPolicy.FIFO
    overdraft_max_permits: int | None = None
    caps: AdmissionCaps = field(default_factory=AdmissionCaps)

    @property
    def policy_class(self) -> type[Admission]:
        """The class of which each budget has an object."""
        if isinstance(self.policy, type):
            return self.policy
        return FairAdmission if self.policy is AdmissionPolicy.FAIR else FifoAdmission

    @property
    def policy_name(self) -> str:
        """The policy as ``floodgateAdmissionPolicy`` names it."""
        if isinstance(self.policy, type):
            return f"{self.policy.__module__}:{self.policy.__qualname__}"
        return self.policy.value

    def overdraft_max(self, limit: int) -> int:
        """Return the bound of an overdraft beyond ``limit``."""
        if self.overdraft_max_permits is not None:
            return self.overdraft_max_permits
        return max(1, limit // OVERDRAFT_DIVISOR)
