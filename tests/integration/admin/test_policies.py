"""Policies by REST beyond the recordings: when effective, and when forgotten."""

import asyncio
from typing import Any

import pytest

from broker.messages.topic import PersistentTopic
from broker.policies.service import PolicyService
from broker.service import BrokerService
from broker.stores.changes import TopicChanges
from proto.names import NamespaceName, TopicName
from tests.support.peers.rest_client import RestClient, rest_client
from tests.support.processes.cluster import broker_config, cluster

NAMESPACE = "/admin/v2/namespaces/public/default"
TOPICS = "/admin/v2/persistent/public/default"
TOPIC = TopicName.parse("persistent://public/default/t")


def next_change(policies: PolicyService) -> asyncio.Event:
    """Return an event set at the next change of policies."""
    changed = asyncio.Event()
    policies.on_change(lambda _: changed.set())
    return changed


async def test_a_policy_applies_to_a_loaded_topic_once_it_is_answered() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/t")
        topic = await parts.broker.messaging.loaded_topics.get(TOPIC)
        assert isinstance(topic, PersistentTopic)
        await rest.done("POST", f"{NAMESPACE}/maxProducersPerTopic", "3")
        of_namespace = topic.policies.max_producers
        await rest.done("POST", f"{TOPICS}/t/maxProducers", "2")
        of_topic = topic.policies.max_producers
        await rest.done("DELETE", f"{TOPICS}/t/maxProducers")
        assert (of_namespace, of_topic, topic.policies.max_producers) == (3, 2, 3)


async def test_a_policy_set_on_a_broker_applies_on_another_broker(postgresql_url: str) -> None:
    config = broker_config({"metadataStoreUrl": postgresql_url})
    async with (
        BrokerService(config) as one,
        BrokerService(config) as other,
        rest_client(one) as rest,
    ):
        await rest.done("PUT", f"{TOPICS}/t")
        changed = next_change(other.policies)
        await rest.done("POST", f"{TOPICS}/t/maxProducers", "2")
        await changed.wait()
        assert other.policies.of(TOPIC).max_producers == 2
        changed = next_change(one.policies)
        await other.policies.forget(TOPIC)
        await changed.wait()
        assert one.policies.of(TOPIC).max_producers == 0


SPACE = "public/default"
GRANTS = {"namespace_auth": {"theirs": ["produce"]}, "destination_auth": {}}
OURS = {"namespace_auth": {"theirs": ["produce"], "ours": ["consume"]}, "destination_auth": {}}
QUOTA = {"limit": 5, "limitSize": 5, "limitTime": -1, "policy": "producer_exception"}


@pytest.mark.parametrize(
    ("name", "key", "theirs", "method", "path", "body", "together"),
    [
        (SPACE, "auth_policies", GRANTS, "POST", "permissions/ours", '["consume"]', OURS),
        (SPACE, "properties", {"theirs": "1"}, "PUT", "property/ours/2", None, {"ours": "2"}),
        (
            SPACE,
            "backlog_quota_map",
            {"destination_storage": QUOTA},
            "POST",
            "backlogQuota?backlogQuotaType=message_age",
            '{"limitTime": -1, "limitSize": 5, "policy": "producer_exception"}',
            {"message_age": QUOTA},
        ),
        (
            SPACE,
            "local_policies",
            {"namespaceAntiAffinityGroup": "theirs"},
            "POST",
            "persistence/bookieAffinity",
            '{"bookkeeperAffinityGroupPrimary": "ours"}',
            {"bookieAffinityGroup": {"bookkeeperAffinityGroupPrimary": "ours"}},
        ),
        (
            SPACE,
            "offload_policies",
            {"managedLedgerOffloadDeletionLagInMillis": 9},
            "PUT",
            "offloadThreshold",
            "5",
            {"managedLedgerOffloadThresholdInBytes": 5},
        ),
        (
            str(TOPIC),
            "dispatch_rates",
            {"theirs": {"dispatchThrottlingRateInMsg": 1}},
            "POST",
            "ours/dispatchRate",
            '{"dispatchThrottlingRateInMsg": 2}',
            {"ours": {"dispatchThrottlingRateInMsg": 2}},
        ),
    ],
)
async def test_a_policy_change_keeps_entries_just_stored_by_another_broker(
    name: str, key: str, theirs: Any, method: str, path: str, body: str | None, together: Any
) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/t")
        await parts.broker.store.set_policy(name, key, theirs)
        await rest.done(method, f"{NAMESPACE if name == SPACE else f'{TOPICS}/t'}/{path}", body)
        kept: Any = (await parts.broker.store.policy_documents(name))[name][key]
        expected = {**theirs, **together}
        assert includes(kept, expected), kept


def includes(kept: Any, expected: Any) -> bool:
    if not isinstance(expected, dict):
        return bool(kept == expected)
    return all(name in kept and includes(kept[name], one) for name, one in expected.items())


async def test_partitions_have_the_policies_of_their_topic_only() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/p/partitions", "2")
        await rest.done("POST", f"{TOPICS}/p/messageTTL?messageTTL=9")
        refused = await rest.ask("POST", f"{TOPICS}/p-partition-1/messageTTL?messageTTL=8")
        partition = TopicName.parse(f"{TOPIC.namespace}/p-partition-1")
        assert parts.broker.policies.of(partition).ttl_seconds == 9
        assert refused.status == 412


@pytest.mark.parametrize("partitions", [0, 3])
async def test_a_recreated_topic_has_no_policies(partitions: int) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        path = f"{TOPICS}/t/partitions" if partitions else f"{TOPICS}/t"
        body = str(partitions) if partitions else None
        await rest.done("PUT", path, body)
        await rest.done("POST", f"{TOPICS}/t/maxProducers", "2")
        await rest.done("DELETE", path)
        await rest.done("PUT", path, body)
        assert (await rest.ask("GET", f"{TOPICS}/t/maxProducers")).text == ""
        assert await parts.broker.store.policy_documents() == {}


async def test_a_recreated_namespace_has_no_policies_and_no_permissions() -> None:
    path = "/admin/v2/namespaces/public/n"
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", path)
        await rest.done("POST", f"{path}/messageTTL", "5")
        await rest.done("POST", f"{path}/permissions/alice", '["produce"]')
        await rest.done("DELETE", path)
        await rest.done("PUT", path)
        assert (await rest.ask("GET", f"{path}/messageTTL")).text == ""
        assert (await rest.ask("GET", f"{path}/permissions")).value == {}


async def test_auto_creation_of_topics_follows_the_policy_of_the_namespace() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        body = '{"allowAutoTopicCreation":true,"topicType":"partitioned","defaultNumPartitions":3}'
        await rest.done("POST", f"{NAMESPACE}/autoTopicCreation", body)
        made = await rest.ask("GET", f"{TOPICS}/new/partitions?checkAllowAutoCreation=true")
        await rest.done(
            "POST", f"{NAMESPACE}/autoTopicCreation", '{"allowAutoTopicCreation":false}'
        )
        refused = await rest.ask("GET", f"{TOPICS}/no/partitions?checkAllowAutoCreation=true")
        assert made.value["partitions"] == 3
        assert refused.status == 404
        in_force = parts.broker.policies.of_namespace(NamespaceName.parse("public/default"))
        assert not in_force.auto_topic_creation.allowed


@pytest.mark.parametrize(
    ("partitions", "problem"),
    [
        ("", "cannot be null when the type is partitioned."),
        (',"defaultNumPartitions":0', "cannot be less than 1 for partition type."),
    ],
)
async def test_auto_created_partitioned_topics_require_a_count(partitions, problem) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        body = f'{{"allowAutoTopicCreation":true,"topicType":"partitioned"{partitions}}}'
        refused = await rest.ask("POST", f"{NAMESPACE}/autoTopicCreation", body)
        assert refused.status == 412
        assert refused.reason.endswith(f"[defaultNumPartitions] {problem}")


@pytest.mark.parametrize(
    ("method", "policy", "body", "missing"),
    [
        ("POST", "messageTTL", "5", "Namespace"),
        ("PUT", "properties", '{"a":"b"}', "Namespace"),
        ("POST", "delayedDelivery", '{"active":true,"tickTime":1}', "Namespace policies"),
        ("DELETE", "inactiveTopicPolicies", None, "Namespace policies"),
        ("POST", "maxSubscriptionsPerTopic", "4", "Namespace policies"),
        ("DELETE", "maxTopicsPerNamespace", None, "Namespace policies"),
        ("POST", "deduplicationSnapshotInterval", "5", "Namespace policies"),
        ("DELETE", "retention", None, "Namespace policies"),
        ("GET", "replicatorDispatchRate", None, "Namespace policies"),
        ("GET", "dispatcherPauseOnAckStatePersistent", None, "Namespace policies"),
    ],
)
async def test_a_policy_of_a_missing_namespace_is_answered_404_in_upstreams_words(
    method: str, policy: str, body: str | None, missing: str
) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        refused = await rest.ask(method, f"/admin/v2/namespaces/public/none/{policy}", body)
        assert (refused.status, refused.reason) == (404, f"{missing} does not exist")


@pytest.mark.parametrize(
    ("method", "policy", "body"),
    [
        ("POST", "backlogQuota", '{"limit":1,"policy":"producer_exception"}'),
        ("DELETE", "backlogQuota", None),
        ("POST", "replicatorDispatchRate", '{"dispatchThrottlingRateInMsg":1}'),
        ("DELETE", "replicatorDispatchRate", None),
    ],
)
@pytest.mark.parametrize(
    ("profile", "reason"), [("pulsar", ""), ("floodgate", "Namespace does not exist")]
)
async def test_some_changes_in_a_missing_namespace_have_no_reason_in_profile_pulsar(
    method: str, policy: str, body: str | None, profile: str, reason: str
) -> None:
    async with cluster(profile=profile) as parts, rest_client(parts.broker) as rest:
        refused = await rest.ask(method, f"/admin/v2/namespaces/public/none/{policy}", body)
        assert (refused.status, refused.value) == (404, {"reason": reason})


@pytest.mark.parametrize(
    ("policy", "body", "status"),
    [
        ("messageTTL", "-1", 412),
        ("autoTopicCreation", '{"allowAutoTopicCreation":true,"topicType":"x"}', 412),
        ("persistence", '{"bookkeeperEnsemble":9}', 400),
        ("retention", '{"retentionTimeInMinutes":-2}', 400),
        ("entryFilters", '{"entryFilterNames":""}', 400),
        ("backlogQuota", '{"limit":1}', 400),
    ],
)
async def test_a_value_is_checked_before_the_existence_of_its_namespace(
    policy: str, body: str, status: int
) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        refused = await rest.ask("POST", f"/admin/v2/namespaces/public/none/{policy}", body)
        assert refused.status == status


async def applied_quotas(rest: RestClient) -> tuple[object, object]:
    await rest.done("PUT", f"{TOPICS}/t")
    applied = (await rest.ask("GET", f"{TOPICS}/t/backlogQuotaMap?applied=true")).value
    return sorted(applied), (await rest.ask("GET", f"{NAMESPACE}/backlogQuotaMap")).value


async def test_showing_applied_quotas_stores_no_quotas_in_the_namespace() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        shown, of_namespace = await applied_quotas(rest)
        assert shown == ["destination_storage", "message_age"]
        assert of_namespace == {}


async def test_with_profile_pulsar_showing_applied_quotas_stores_quotas_in_the_namespace() -> None:
    async with cluster(profile="pulsar") as parts, rest_client(parts.broker) as rest:
        shown, of_namespace = await applied_quotas(rest)
        assert sorted(of_namespace) == shown == ["destination_storage", "message_age"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (f"{NAMESPACE}/maxProducersPerTopic", "2147483648", 400),
        (f"{NAMESPACE}/maxProducersPerTopic", "1e999999999", 400),
        (f"{NAMESPACE}/maxProducersPerTopic", "true", 400),
        (f"{NAMESPACE}/maxProducersPerTopic", "[1]", 400),
        (f"{NAMESPACE}/maxProducersPerTopic", '"NaN"', 400),
        (f"{NAMESPACE}/deduplication", "1", 400),
        (f"{NAMESPACE}/retention", "[]", 400),
        (f"{NAMESPACE}/dispatchRate", '{"dispatchThrottlingRateInByte":9223372036854775808}', 400),
        (f"{NAMESPACE}/subscriptionTypesEnabled", '["Nope"]', 400),
        (f"{NAMESPACE}/permissions/alice", '{"a":1}', 400),
        (f"{NAMESPACE}/replication", '["other"]', 403),
        (f"{NAMESPACE}/backlogQuota", "", 400),
    ],
)
async def test_an_invalid_policy_is_refused_and_not_set(path: str, body: str, status: int) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        answer = await rest.ask("POST", path, body)
        assert answer.status == status
        assert await parts.broker.store.policy_documents() == {}


async def test_a_retention_below_the_backlog_quota_is_refused_in_either_order() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        quota = '{"limitSize":31457280,"policy":"producer_exception"}'
        low = '{"retentionTimeInMinutes":10,"retentionSizeInMB":20}'
        await rest.done("POST", f"{NAMESPACE}/backlogQuota", quota)
        refused = await rest.ask("POST", f"{NAMESPACE}/retention", low)
        await rest.done("DELETE", f"{NAMESPACE}/backlogQuota")
        await rest.done("POST", f"{NAMESPACE}/retention", low)
        also = await rest.ask("POST", f"{NAMESPACE}/backlogQuota", quota)
        assert (refused.status, also.status) == (412, 412)


async def test_a_namespace_compares_only_its_quota_by_size_with_its_retention() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done(
            "POST",
            f"{NAMESPACE}/retention",
            '{"retentionTimeInMinutes":10,"retentionSizeInMB":20}',
        )
        quota = '{"limitSize":31457280,"limitTime":9000,"policy":"producer_exception"}'
        await rest.done("POST", f"{NAMESPACE}/backlogQuota?backlogQuotaType=message_age", quota)


async def test_a_topic_compares_the_quotas_and_retention_of_its_namespace_where_it_sets_none() -> (
    None
):
    async with cluster() as parts, rest_client(parts.broker) as rest:
        for name in ("t", "u"):
            await rest.done("PUT", f"{TOPICS}/{name}")
        quota = '{"limitTime":660,"policy":"producer_exception"}'
        retention = '{"retentionTimeInMinutes":10,"retentionSizeInMB":20}'
        by_age = "backlogQuota?backlogQuotaType=message_age"
        await rest.done("POST", f"{NAMESPACE}/{by_age}", quota)
        low = await rest.ask("POST", f"{TOPICS}/t/retention", retention)
        await rest.done("DELETE", f"{NAMESPACE}/{by_age}")
        await rest.done("POST", f"{NAMESPACE}/retention", retention)
        high = await rest.ask("POST", f"{TOPICS}/u/{by_age}", quota)
        assert (low.status, low.reason) == (
            412,
            "Retention Quota must exceed configured backlog quota for topic. "
            "Please increase retention quota and retry",
        )
        assert (high.status, high.reason) == (
            412,
            "Backlog Quota exceeds configured retention quota for topic. "
            "Please increase retention quota and retry",
        )


async def test_global_and_local_policies_of_a_topic_are_set_shown_and_removed_separately() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/t")
        path = f"{TOPICS}/t/maxProducers"
        await rest.done("POST", path, "2")
        await rest.done("POST", f"{path}?isGlobal=true", "3")
        both = [(await rest.ask("GET", f"{path}{end}")).value for end in ("", "?isGlobal=true")]
        local = parts.broker.policies.of(TOPIC).max_producers
        await rest.done("DELETE", path)
        shown = (await rest.ask("GET", path)).text
        assert (both, local, shown) == ([2, 3], 2, "")
        assert parts.broker.policies.of(TOPIC).max_producers == 3


@pytest.mark.parametrize("policy", ["messageTTL", "subscriptionExpirationTime"])
async def test_a_policy_given_in_the_query_is_removed_by_an_empty_value(policy: str) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/t")
        path = f"{TOPICS}/t/{policy}"
        await rest.done("POST", f"{path}?{policy}=7")
        value = (await rest.ask("GET", path)).value
        await rest.done("POST", f"{path}?{policy}=")
        assert (value, (await rest.ask("GET", path)).text) == (7, "")


async def test_global_replication_clusters_need_a_replicated_namespace() -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/t")
        path = f"{TOPICS}/t/replication?isGlobal=true"
        refused = await rest.ask("POST", path, '["standalone"]')
        assert refused.status == 412
        assert refused.reason.startswith("Please do not use the global topic level policy")


async def test_the_older_schema_strategy_of_a_namespace_counts_while_the_newer_is_undefined() -> (
    None
):
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/t")
        applied = f"{TOPICS}/t/schemaCompatibilityStrategy?applied=true"
        path = f"{NAMESPACE}/schemaAutoUpdateCompatibilityStrategy"
        await rest.done("PUT", path, '"Backward"')
        older = (await rest.ask("GET", applied)).value
        await rest.done("PUT", f"{NAMESPACE}/schemaCompatibilityStrategy", '"FORWARD"')
        assert (older, (await rest.ask("GET", applied)).value) == ("BACKWARD", "FORWARD")


async def test_more_default_partitions_than_a_topic_may_have_are_answered_406() -> None:
    keys = {"maxNumPartitionsPerPartitionedTopic": "4"}
    async with cluster(broker=keys) as parts, rest_client(parts.broker) as rest:
        body = '{"allowAutoTopicCreation":true,"topicType":"partitioned","defaultNumPartitions":5}'
        refused = await rest.ask("POST", f"{NAMESPACE}/autoTopicCreation", body)
        assert (refused.status, refused.reason) == (
            406,
            "Number of partitions should be less than or equal to 4",
        )


@pytest.mark.parametrize(
    ("path", "body", "shown"),
    [
        ("deduplicationSnapshotInterval", "6", ""),
        ("dispatcherPauseOnAckStatePersistent", None, "false"),
    ],
)
async def test_some_applied_topic_policies_do_not_show_the_value_of_the_namespace(
    path: str, body: str | None, shown: str
) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/t")
        await rest.done("POST", f"{NAMESPACE}/{path}", body)
        assert (await rest.ask("GET", f"{TOPICS}/t/{path}?applied=true")).text == shown


@pytest.mark.parametrize("path", ["messageTTL?messageTTL=77", "permissions/eve"])
@pytest.mark.parametrize("below", [f"{TOPICS}/t", NAMESPACE])
async def test_a_policy_set_during_a_deletion_is_answered_404_and_not_stored(
    monkeypatch: pytest.MonkeyPatch, below: str, path: str
) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/t")
        store = parts.broker.store
        write = store.set_policy

        async def late(*change: Any) -> bool:
            monkeypatch.undo()
            if below == NAMESPACE:
                await store.delete_all([TOPIC.namespace])
            else:
                await store.apply(TOPIC.namespace, TopicChanges((), [str(TOPIC).encode()]))
            return await write(*change)

        monkeypatch.setattr(store, "set_policy", late)
        body = '["produce"]' if "permissions" in path else "77"
        answer = await rest.ask("POST", f"{below}/{path}", body)
        assert answer.status == 404
        assert await store.policy_documents() == {}
