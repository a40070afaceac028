"""Whatever happens to flights in any order: every answer is right, and the books are balanced."""

from __future__ import annotations

from random import Random

import pytest

from limiter.admission import AdmissionPolicy
from tests.properties.flights_history import FlightsHistory

SEEDS = 20
STEPS = 250


@pytest.mark.parametrize("policy", list(AdmissionPolicy))
@pytest.mark.parametrize("own_hashes", [False, True])
async def test_any_history_of_flights_is_right_and_leaves_nothing(
    policy: AdmissionPolicy, own_hashes: bool
) -> None:
    answered = unchanged = reused = 0
    for seed in range(SEEDS):
        history = FlightsHistory(Random(seed), policy, own_hashes=own_hashes)
        for _ in range(STEPS):
            await history.step()
        await history.end()
        answered += history.answered
        unchanged += history.unchanged
        reused += history.flights.live.reused_total
    # Then: what it is about did happen
    assert answered > 10 * SEEDS
    assert reused > SEEDS
    assert (unchanged > SEEDS) is own_hashes
