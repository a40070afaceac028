"""Semaphores of policy fair for tests."""

from limiter.admission.caps import AdmissionCaps
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.permits.permit import AcquireOutcome
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.clocks.manual_clock import ManualClock


class FairLimiter:
    """A semaphore of policy fair, its clock, and its observer's events."""

    def __init__(
        self,
        limit: int = 100,
        queue: int = 100,
        overdraft: int | None = None,
        caps: AdmissionCaps | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.outcomes: list[AcquireOutcome] = []
        self.semaphore = AsyncSemaphore(
            limit,
            queue,
            25.0,
            self.clock,
            lambda outcome, _, count: self.outcomes.extend([outcome] * count),
            AdmissionRules(AdmissionPolicy.FAIR, overdraft, caps or AdmissionCaps()),
        )


def fair(limit: int = 100, queue: int = 100, caps: AdmissionCaps | None = None) -> AsyncSemaphore:
    """Return a semaphore for tests without further needs."""
    return FairLimiter(limit, queue, None, caps).semaphore
