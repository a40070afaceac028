"""The rules of admission as configuration."""

from dataclasses import FrozenInstanceError

import pytest

from limiter.admission.caps import AdmissionCaps
from limiter.admission.rules import AdmissionPolicy, AdmissionRules


def test_policies_have_the_names_of_the_configuration() -> None:
    assert AdmissionPolicy("fifo") is AdmissionPolicy.FIFO
    assert AdmissionPolicy("fair") is AdmissionPolicy.FAIR


def test_the_default_rules_are_policy_fifo_without_caps() -> None:
    rules = AdmissionRules()
    assert rules.policy is AdmissionPolicy.FIFO
    assert rules.caps == AdmissionCaps(per_connection=0, per_namespace=0, per_tenant=0)


@pytest.mark.parametrize(("limit", "overdraft_max"), [(1_000, 100), (109, 10), (9, 1), (1, 1)])
def test_the_default_overdraft_is_a_tenth_of_the_limit_and_at_least_1(limit, overdraft_max) -> None:
    assert AdmissionRules().overdraft_max(limit) == overdraft_max


@pytest.mark.parametrize("configured", [0, 7])
def test_a_configured_overdraft_applies_at_any_limit(configured: int) -> None:
    rules = AdmissionRules(overdraft_max_permits=configured)
    assert rules.overdraft_max(1_000) == configured


def test_rules_are_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        AdmissionRules().policy = AdmissionPolicy.FAIR  # type: ignore[misc]
