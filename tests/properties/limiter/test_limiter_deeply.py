"""The normal runs' histories, twenty times as many, and longer."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.properties.limiter.test_limiter_any_policy_properties import (
    AnyFairPolicyHistory,
    AnyPolicyHistory,
)
from tests.properties.limiter.test_limiter_fair_properties import CappedHistory, FairHistory
from tests.properties.limiter.test_limiter_fifo_properties import FifoHistory
from tests.properties.limiter.test_shared_leases_properties import LeaseHistory

DEEPLY = settings(
    max_examples=2_000,
    stateful_step_count=60,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.proof
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    "history",
    [FifoHistory, FairHistory, CappedHistory, AnyPolicyHistory, AnyFairPolicyHistory, LeaseHistory],
)
def test_the_limiter_keeps_its_rules_in_many_long_histories(
    history: type[RuleBasedStateMachine],
) -> None:
    run_state_machine_as_test(history, settings=DEEPLY)
