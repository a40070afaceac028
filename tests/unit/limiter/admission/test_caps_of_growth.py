"""A cap refuses impossible totals, growth included."""

import pytest

from limiter.admission.caps import AdmissionCaps
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import LimitScope, PermitTooLargeError
from limiter.permits.permit import AcquireOutcome
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.clocks.manual_clock import ManualClock


@pytest.mark.parametrize(
    ("caps", "scope"),
    [
        (AdmissionCaps(per_connection=20), LimitScope.CONNECTION),
        (AdmissionCaps(per_namespace=20), LimitScope.NAMESPACE),
        (AdmissionCaps(per_tenant=20), LimitScope.TENANT),
    ],
)
async def test_growth_that_alone_exceeds_a_cap_is_refused_every_time(caps, scope) -> None:
    outcomes: list[AcquireOutcome] = []
    rules = AdmissionRules(AdmissionPolicy.FAIR, caps=caps)
    semaphore = AsyncSemaphore(
        100,
        0,
        25.0,
        ManualClock(),
        lambda outcome, _, count: outcomes.extend([outcome] * count),
        rules,
    )
    permit = await semaphore.acquire(1, owner="a", namespace="t/n")
    for _ in range(2):
        with pytest.raises(PermitTooLargeError) as refused:
            await semaphore.update(permit, 21)
        assert (refused.value.limit, refused.value.scope) == (20, scope)
    assert outcomes.count(AcquireOutcome.OVERSIZED) == 2
    assert semaphore.acquired_permits == 1
