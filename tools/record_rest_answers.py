"""Record answers of a real broker's admin REST API: ``record_rest_answers.py WEB_PORT``.

Start a local broker with fresh data first. Prints JSON lines, stored in
tests/data/rest_answers.jsonl. Answers that are not JSON are left out: they are Java's own texts.
"""

from __future__ import annotations

import http.client
import json
import sys

_QUOTA = '{"limitSize":1000,"limitTime":5,"policy":"producer_exception"}'
_DISPATCH = '{"standalone":{"dispatchThrottlingRateInMsg":5,"ratePeriodInSecond":1}}'
POLICIES = (
    "{}",
    '{"auth_policies":{"namespace_auth":{"r":["consume"],"none":null},'
    '"destination_auth":{"persistent://public/x/t":{"r":["consume"]}},'
    '"subscription_auth_roles":{"s":["a"]}}}',
    '{"auth_policies":{"namespace_auth":{"r":["nope"]}}}',
    '{"auth_policies":null,"encryption_required":null,"subscription_types_enabled":null}',
    '{"auth_policies":{"namespace_auth":[]}}',
    '{"auth_policies":{"namespace_auth":{"r":"produce"}}}',
    f'{{"backlog_quota_map":{{"destination_storage":{_QUOTA},"message_age":null}}}}',
    '{"backlog_quota_map":{"destination_storage":{"limitSize":1000}}}',
    '{"backlog_quota_map":[]}',
    f'{{"backlog_quota_map":{{"nope":{_QUOTA}}}}}',
    '{"retention_policies":{"retentionTimeInMinutes":10,"retentionSizeInMB":20}}',
    '{"retention_policies":{"retentionTimeInMinutes":0,"retentionSizeInMB":20}}',
    '{"retention_policies":{"retentionTimeInMinutes":1,"retentionSizeInMB":1},'
    '"backlog_quota_map":{"destination_storage":{"limitSize":1099511627776,'
    '"limitTime":-1,"policy":"producer_exception"}}}',
    '{"message_ttl_in_seconds":60}',
    '{"message_ttl_in_seconds":-1}',
    '{"message_ttl_in_seconds":"x"}',
    '{"publishMaxMessageRate":{"standalone":{"publishThrottlingRateInMsg":5}}}',
    '{"publishMaxMessageRate":{"standalone":null}}',
    '{"publishMaxMessageRate":{"publishThrottlingRateInMsg":5}}',
    '{"publishMaxMessageRate":{"other":{"publishThrottlingRateInMsg":5}}}',
    f'{{"topicDispatchRate":{_DISPATCH},"subscriptionDispatchRate":{_DISPATCH},'
    f'"replicatorDispatchRate":{_DISPATCH}}}',
    f'{{"clusterDispatchRate":{_DISPATCH}}}',
    '{"clusterSubscribeRate":{"standalone":{"subscribeThrottlingRatePerConsumer":5}}}',
    '{"encryption_required":true,"subscription_auth_mode":"Prefix"}',
    '{"encryption_required":"x"}',
    '{"max_producers_per_topic":"3","max_consumers_per_topic":4,"max_topics_per_namespace":0,'
    '"max_consumers_per_subscription":5,"max_subscriptions_per_topic":6,'
    '"max_unacked_messages_per_consumer":8,"max_unacked_messages_per_subscription":9}',
    '{"max_producers_per_topic":-3}',
    '{"deduplicationEnabled":true,"deduplicationSnapshotIntervalSeconds":5,'
    '"compaction_threshold":100,"subscription_expiration_time_minutes":7}',
    '{"compaction_threshold":-1}',
    '{"persistence":{"bookkeeperEnsemble":1,"bookkeeperWriteQuorum":1,"bookkeeperAckQuorum":1,'
    '"managedLedgerMaxMarkDeleteRate":0}}',
    '{"persistence":{"bookkeeperEnsemble":1,"bookkeeperWriteQuorum":2,"bookkeeperAckQuorum":1}}',
    '{"schema_compatibility_strategy":"FULL","schema_auto_update_compatibility_strategy":"Full",'
    '"schema_validation_enforced":true,"is_allow_auto_update_schema":false}',
    '{"schema_compatibility_strategy":"nope"}',
    '{"subscription_types_enabled":["Shared"]}',
    '{"subscription_types_enabled":["nope"]}',
    '{"properties":{"a":"b","c":1,"d":null}}',
    '{"autoTopicCreationOverride":{"allowAutoTopicCreation":true,"topicType":"partitioned",'
    '"defaultNumPartitions":3},'
    '"autoSubscriptionCreationOverride":{"allowAutoSubscriptionCreation":true}}',
    '{"autoTopicCreationOverride":{"allowAutoTopicCreation":true,"topicType":"nope"}}',
    '{"delayed_delivery_policies":{"active":true,"tickTime":1000},'
    '"inactive_topic_policies":{"inactiveTopicDeleteMode":"delete_when_no_subscriptions",'
    '"maxInactiveDurationSeconds":5,"deleteWhileInactive":true}}',
    '{"entryFilters":{"entryFilterNames":"nope"}}',
    '{"dispatcherPauseOnAckStatePersistentEnabled":true}',
    '{"dispatcherPauseOnAckStatePersistentEnabled":false}',
    '{"offload_policies":{"managedLedgerOffloadDriver":"nope"}}',
    '{"offload_threshold":5,"offload_threshold_in_seconds":6,"offload_deletion_lag_ms":7}',
    '{"latency_stats_sample_rate":{"a":1}}',
    '{"allowed_clusters":["standalone"]}',
    '{"allowed_clusters":["other"]}',
    '{"allowed_topic_property_keys_for_metrics":["a"]}',
    '{"resource_group_name":"g"}',
    '{"migrated":true}',
    '{"nope":1}',
)
"""Policies for created namespaces."""
_OFF = (
    ("GET", "v3/functions/public/default"),
    ("GET", "v3/functions/public/default/x"),
    ("DELETE", "v3/functions/public/default/x"),
    ("GET", "v3/functions/public/default/x/status"),
    ("GET", "v3/functions/public/default/x/stats"),
    ("GET", "v3/functions/connectors"),
    ("GET", "v3/sinks/public/default"),
    ("GET", "v3/sinks/public/default/x"),
    ("DELETE", "v3/sinks/public/default/x"),
    ("GET", "v3/sinks/public/default/x/status"),
    ("GET", "v3/sinks/builtinsinks"),
    ("GET", "v3/sources/public/default"),
    ("GET", "v3/sources/public/default/x"),
    ("DELETE", "v3/sources/public/default/x"),
    ("GET", "v3/sources/builtinsources"),
    ("GET", "v2/functions/public/default"),
    ("GET", "v2/functions/public/default/x"),
    ("GET", "v2/worker/cluster"),
    ("GET", "v2/worker-stats/metrics"),
    ("GET", "v3/packages/function/public/default"),
    ("GET", "v3/packages/sink/public/default/x"),
    ("GET", "v3/packages/source/public/default/x/v"),
    ("DELETE", "v3/packages/function/public/default/x/v"),
    ("GET", "v3/packages/function/public/default/x/v/metadata"),
    ("GET", "v3/packages/nope/public/default"),
    ("GET", "v3/transactions/coordinators"),
    ("GET", "v3/transactions/coordinatorStats"),
    ("GET", "v3/transactions/coordinatorInternalStats/0"),
    ("GET", "v3/transactions/slowTransactions/1000"),
    ("GET", "v3/transactions/transactionMetadata/0/1"),
    ("GET", "v3/transactions/transactionBufferStats/public/default/t"),
    ("GET", "v3/transactions/pendingAckStats/public/default/t/s"),
    ("POST", "v3/transactions/abortTransaction/0/1"),
    ("GET", "v3/functions"),
    ("GET", "v3/packages"),
    ("GET", "v3/transactions"),
    ("GET", "v3/nope"),
    ("GET", "v3/sinks/public"),
    ("GET", "v2/sinks/public/default"),
    ("GET", "v2/sources/public/default"),
    ("GET", "v2/packages/function/public/default"),
    ("GET", "v2/transactions/coordinatorStats"),
    ("GET", "v2/proxy-stats/connections"),
)
"""Parts of Pulsar that a standalone broker lacks or has switched off."""
_CONSTANTS = (
    "brokers/internal-configuration",
    "brokers/standalone/127.0.0.1:1/ownedNamespaces",
    "namespaces/public/default/allowedClusters",
    "namespaces/public/nope/allowedClusters",
    "namespaces/public/default/allowedTopicPropertyKeysForMetrics",
    "namespaces/public/nope/allowedTopicPropertyKeysForMetrics",
    "namespaces/public/default/antiAffinity",
    "namespaces/public/nope/antiAffinity",
    "namespaces/public/default/persistence/bookieAffinity",
    "namespaces/public/nope/persistence/bookieAffinity",
    "namespaces/public/default/resourcegroup",
    "namespaces/public/nope/resourcegroup",
    "namespaces/standalone/antiAffinity/g",
    "namespaces/standalone/antiAffinity/g?tenant=public",
    "clusters/standalone/peers",
    "clusters/nope/peers",
    "clusters/standalone/failureDomains",
    "clusters/nope/failureDomains",
    "clusters/standalone/failureDomains/x",
    "clusters/nope/failureDomains/x",
    "clusters/standalone/namespaceIsolationPolicies",
    "clusters/nope/namespaceIsolationPolicies",
    "clusters/standalone/namespaceIsolationPolicies/x",
    "clusters/nope/namespaceIsolationPolicies/x",
    "clusters/standalone/namespaceIsolationPolicies/brokers",
    "clusters/standalone/namespaceIsolationPolicies/brokers/127.0.0.1:1",
    "clusters/standalone/migrate",
    "resource-quotas",
    "resource-quotas/public/default/0x00000000_0x40000000",
    "resource-quotas/public/default/0x00000000_0x40000001",
    "resource-quotas/public/nope/0x00000000_0xffffffff",
    "resourcegroups",
    "resourcegroups/x",
    "broker-stats/load-report",
    "broker-stats/topics",
    "broker-stats/allocator-stats/nope",
    "broker-stats/broker-resource-availability/public/default",
    "bookies/racks-info",
    "bookies/racks-info/x",
)
"""Calls recorded on a broker without load, limits and topics in use."""
REQUESTS = (
    *((method, path, "") for method, path in _OFF),
    *(("GET", f"v2/{path}", "") for path in _CONSTANTS),
    *(
        (method, f"v2/namespaces/public/made-{number}", body)
        for number, made in enumerate(POLICIES)
        for method, body in (("PUT", made), ("GET", ""))
    ),
)


def main() -> None:
    """Print a JSON line with the broker's answer to each request."""
    port = int(sys.argv[1])
    for method, path, body in REQUESTS:
        status, answer = _asked(port, method, path, body)
        line = {"method": method, "path": path, "body": body, "status": status, "answer": answer}
        print(json.dumps(line, separators=(",", ":")))


def _asked(port: int, method: str, path: str, body: str) -> tuple[int, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Content-Type": "application/json"} if body else {}
    connection.request(method, f"/admin/{path}", body or None, headers)
    answer = connection.getresponse()
    try:
        return answer.status, json.loads(answer.read())
    except ValueError:
        return answer.status, None


if __name__ == "__main__":
    main()
