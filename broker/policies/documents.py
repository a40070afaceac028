"""Conversion of policies as stored (JSON, by key) into a topic's effective policies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from broker.policies.effective import (
    AutoTopicCreation,
    BacklogQuota,
    DeleteMode,
    InactiveTopics,
    QuotaAction,
)
from broker.policies.table import (
    OLD_STRATEGIES,
    OLD_STRATEGY_KEY,
    SUBSCRIPTION_RATE,
    TABLE,
    UNDEFINED,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.policies.effective import EffectivePolicies

SIZE_QUOTA, AGE_QUOTA = "destination_storage", "message_age"
LOCAL_POLICIES = "local_policies"
"""Key of policies hidden from a namespace's policies: bookies and anti-affinity."""
GLOBAL = "global:"
"""Beginning of the keys of a topic's global policies, which its local policies override."""
_ONLY_SHOWN = ("persistence", "replicatorDispatchRate")
_RATES = "dispatch_rates"


def scoped(document: Mapping[str, Any], *, globally: bool) -> Mapping[str, Any]:
    """Return a topic's global policies, or else its local ones, by policy key."""
    return {
        key.removeprefix(GLOBAL): value
        for key, value in document.items()
        if key.startswith(GLOBAL) is globally
    }


def in_force(base: EffectivePolicies, document: Mapping[str, Any]) -> EffectivePolicies:
    """Return ``base`` overridden by a namespace's or topic's stored policies."""
    for globally in (True, False):
        values = scoped(document, globally=globally)
        changes: dict[str, Any] = {}
        for key, effect in _EFFECTS.items():
            if key in values:
                changes |= effect(values[key])
        if _RATES in changes:
            changes[_RATES] = {**base.dispatch_rates, **changes[_RATES]}
        base = replace(base, **changes)
    return base


def _quotas(value: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, quota in value.items():
        action = QuotaAction(quota["policy"])
        if name == AGE_QUOTA:
            found["age_quota"] = BacklogQuota(quota["limitTime"], action)
        else:
            found["size_quota"] = BacklogQuota(quota["limitSize"], action)
    return found


def _inactive(value: Mapping[str, Any]) -> dict[str, Any]:
    mode, seconds = value.get("inactiveTopicDeleteMode"), value["maxInactiveDurationSeconds"]
    if mode is None:
        # Set without a mode: no topics are deleted.
        return {"inactive_topics": InactiveTopics(after_seconds=seconds)}
    found = InactiveTopics(value["deleteWhileInactive"], seconds, DeleteMode(mode))
    return {"inactive_topics": found}


def _auto_topics(value: Mapping[str, Any]) -> dict[str, Any]:
    partitioned = value.get("topicType") == "partitioned"
    partitions = int(value.get("defaultNumPartitions") or 1) if partitioned else 0
    return {"auto_topic_creation": AutoTopicCreation(value["allowAutoTopicCreation"], partitions)}


def _rates(value: Mapping[str, Any]) -> dict[str, Any]:
    of_one = SUBSCRIPTION_RATE.effect
    rates = {name: of_one(rate)[SUBSCRIPTION_RATE.field] for name, rate in value.items()}
    return {_RATES: rates}


_EFFECTS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    **{policy.key: policy.effect for policy in TABLE if policy.key not in _ONLY_SHOWN},
    "autoTopicCreationOverride": _auto_topics,
    "backlog_quota_map": _quotas,
    _RATES: _rates,
    "inactive_topic_policies": _inactive,
    OLD_STRATEGY_KEY: lambda value: {"schema_strategy": OLD_STRATEGIES[value]},
    "schema_compatibility_strategy": lambda value: (
        {} if value == UNDEFINED else {"schema_strategy": value}
    ),
    # The broker or the namespace enforces for all topics: False never overrides.
    "schema_validation_enforced": lambda value: (
        {"schema_validation_enforced": True} if value else {}
    ),
    "subscription_types_enabled": lambda value: (
        {"subscription_types": frozenset(value)} if value else {}
    ),
}
"""The fields of effective policies for the value of each policy; a later policy overrides."""
