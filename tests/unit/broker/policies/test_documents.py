import pytest

from broker.policies.documents import in_force
from broker.policies.effective import (
    ALL_TYPES,
    DEFAULTS,
    AutoTopicCreation,
    BacklogQuota,
    DeleteMode,
    InactiveTopics,
    QuotaAction,
    Rate,
)

RATE = {
    "dispatchThrottlingRateInMsg": 10,
    "dispatchThrottlingRateInByte": 1_000,
    "relativeToPublishRate": True,
    "ratePeriodInSecond": 2,
}
AS_READ = Rate(10, 1_000, 2, relative=True)


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("max_producers_per_topic", 3, "max_producers", 3),
        ("topicDispatchRate", RATE, "dispatch_rate", AS_READ),
        ("subscriptionDispatchRate", RATE, "subscription_dispatch_rate", AS_READ),
        ("dispatch_rates", {"s": RATE}, "dispatch_rates", {"s": AS_READ}),
        (
            "publishMaxMessageRate",
            {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1},
            "publish_rate",
            Rate(10, -1),
        ),
        (
            "inactive_topic_policies",
            {
                "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
                "maxInactiveDurationSeconds": 5,
                "deleteWhileInactive": True,
            },
            "inactive_topics",
            InactiveTopics(True, 5, DeleteMode.CAUGHT_UP),
        ),
        (
            "autoTopicCreationOverride",
            {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
            "auto_topic_creation",
            AutoTopicCreation(True, 3),
        ),
        (
            "autoTopicCreationOverride",
            {"allowAutoTopicCreation": False},
            "auto_topic_creation",
            AutoTopicCreation(False, 0),
        ),
        ("schema_compatibility_strategy", "BACKWARD", "schema_strategy", "BACKWARD"),
        ("schema_compatibility_strategy", "UNDEFINED", "schema_strategy", "FULL"),
        ("schema_auto_update_compatibility_strategy", "Backward", "schema_strategy", "BACKWARD"),
        ("subscription_types_enabled", ["Shared"], "subscription_types", {"Shared"}),
        ("subscription_types_enabled", [], "subscription_types", ALL_TYPES),
    ],
)
def test_each_stored_policy_sets_its_effective_field(key, value, field, expected) -> None:
    assert getattr(in_force(DEFAULTS, {key: value}), field) == expected


def test_size_and_age_backlog_quotas_are_independent() -> None:
    size = {"limit": 9, "limitSize": 9, "limitTime": 0, "policy": "producer_exception"}
    age = {"limit": 0, "limitSize": 0, "limitTime": 60, "policy": "consumer_backlog_eviction"}
    both = in_force(
        DEFAULTS, {"backlog_quota_map": {"destination_storage": size, "message_age": age}}
    )
    one = in_force(both, {"backlog_quota_map": {"message_age": {**age, "limitTime": 5}}})
    assert both.size_quota == one.size_quota == BacklogQuota(9, QuotaAction.EXCEPTION)
    assert both.age_quota == BacklogQuota(60, QuotaAction.EVICT)
    assert one.age_quota == BacklogQuota(5, QuotaAction.EVICT)


def test_schema_validation_enforced_by_a_namespace_cannot_be_lifted_by_a_topic() -> None:
    key = "schema_validation_enforced"
    found = in_force(in_force(DEFAULTS, {key: True}), {key: False})
    assert found.schema_validation_enforced


def test_a_display_only_policy_has_no_effect() -> None:
    assert in_force(DEFAULTS, {"persistence": {"bookkeeperEnsemble": 1}}) == DEFAULTS


def test_inactive_topics_without_a_delete_mode_are_not_deleted() -> None:
    document = {
        "inactive_topic_policies": {"maxInactiveDurationSeconds": 5, "deleteWhileInactive": True}
    }
    found = in_force(DEFAULTS, document).inactive_topics
    # As in a real broker, which has no case for the value
    assert found == InactiveTopics(delete=False, after_seconds=5)


def test_local_policies_of_a_topic_override_its_global_ones_one_by_one() -> None:
    document = {
        "max_producers_per_topic": 2,
        "global:max_producers_per_topic": 3,
        "global:max_consumers_per_topic": 4,
        "dispatch_rates": {"s": RATE},
        "global:dispatch_rates": {"other": RATE},
    }
    found = in_force(DEFAULTS, document)
    assert (found.max_producers, found.max_consumers) == (2, 4)
    assert found.dispatch_rates == {"s": AS_READ, "other": AS_READ}
