"""Configuration of admission: policy, overdraft, caps."""

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
    """The built-in policies, by their values of ``floodgateAdmissionPolicy``."""

    FIFO = "fifo"
    """As upstream: strict order, growth waits at the tail, the head blocks the queue."""
    FAIR = "fair"
    """Growth of admitted work first, then round-robin by bytes; see limiter.admission.fair."""


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """The order and the bounds by which a semaphore grants requests.

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
        """The class instantiated for each budget."""
        if isinstance(self.policy, type):
            return self.policy
        return FairAdmission if self.policy is AdmissionPolicy.FAIR else FifoAdmission

    @property
    def policy_name(self) -> str:
        """The policy's value of ``floodgateAdmissionPolicy``."""
        if isinstance(self.policy, type):
            return f"{self.policy.__module__}:{self.policy.__qualname__}"
        return self.policy.value

    def overdraft_max(self, limit: int) -> int:
        """Return the bound of an overdraft beyond ``limit``."""
        if self.overdraft_max_permits is not None:
            return self.overdraft_max_permits
        return max(1, limit // OVERDRAFT_DIVISOR)
