"""Configuration of how a semaphore admits requests: policy, overdraft and caps."""

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
"""The default overdraft is the limit divided by this number."""


class AdmissionPolicy(Enum):
    """The built-in admission policies, as set by ``floodgateAdmissionPolicy``."""

    FIFO = "fifo"
    """As upstream: strict order, growth waits at the tail, the head blocks the queue."""
    FAIR = "fair"
    """Growth of admitted work first, then round-robin by bytes; see limiter.admission.fair."""


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """Rules by which a semaphore orders and limits the grants of requests.

    Attributes:
        policy: A built-in policy, or a policy class.
        overdraft_max_permits: How far beyond the limit a growth may go to end a stall, when every
            holder waits to grow; None is a tenth of the limit. Fifo ends no stall.
        caps: Limits of each connection, namespace and tenant, ignored by fifo.
    """

    policy: AdmissionPolicy | type[Admission] = AdmissionPolicy.FIFO
    overdraft_max_permits: int | None = None
    caps: AdmissionCaps = field(default_factory=AdmissionCaps)

    @property
    def policy_class(self) -> type[Admission]:
        """The policy's class, which is instantiated for each budget."""
        if isinstance(self.policy, type):
            return self.policy
        return FairAdmission if self.policy is AdmissionPolicy.FAIR else FifoAdmission

    @property
    def policy_name(self) -> str:
        """The policy's name, as set by ``floodgateAdmissionPolicy``."""
        if isinstance(self.policy, type):
            return f"{self.policy.__module__}:{self.policy.__qualname__}"
        return self.policy.value

    def overdraft_max(self, limit: int) -> int:
        """Return the number of permits that may exceed ``limit`` to end a growth stall."""
        if self.overdraft_max_permits is not None:
            return self.overdraft_max_permits
        return max(1, limit // OVERDRAFT_DIVISOR)
