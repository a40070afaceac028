"""Flights in any order of events: every answer is right, and the books are balanced."""

from random import Random

import pytest

from limiter.admission.rules import AdmissionPolicy
from proxy.listing import requesters
from proxy.listing.requesters import ANSWERS_A_TURN
from tests.properties.proxy.flights_history import FlightsHistory

SEEDS = 20
STEPS = 250


@pytest.mark.parametrize("policy", list(AdmissionPolicy))
@pytest.mark.parametrize("own_hashes", [False, True])
@pytest.mark.parametrize("answers_a_turn", [1, ANSWERS_A_TURN])
async def test_any_history_of_flights_is_answered_correctly_and_leaves_nothing(
    policy: AdmissionPolicy, own_hashes: bool, answers_a_turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requesters, "ANSWERS_A_TURN", answers_a_turn)
    answered = unchanged = reused = 0
    for seed in range(SEEDS):
        history = FlightsHistory(Random(seed), policy, own_hashes=own_hashes)
        for _ in range(STEPS):
            await history.step()
        await history.end()
        answered += history.answered
        unchanged += history.unchanged
        reused += history.flights.live.reused_total
    # The case under test did happen
    assert answered > 10 * SEEDS
    assert reused > SEEDS
    assert (unchanged > SEEDS) is own_hashes
