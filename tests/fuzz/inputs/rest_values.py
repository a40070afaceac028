"""Values for REST paths, queries, headers and bodies, valid and invalid."""

import json

METHODS = ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH")
PATHS = ("/", "/metrics/", "/metrics", "/admin/v2/brokers/ready", "/status.html", "/floodgate/",
         "/admin/v2/floodgate/limiter", "/openapi.json", "/nowhere")  # fmt: skip
VALUES = {
    "": ("public", "default", "t", "s", "0", "persistent", "x"),
    "odd": ("", ".", "..", "%2F", "%00", "%ff", "a%20b", "ä".encode().decode("latin-1"), "x" * 120,
            "-1", "99999999999999999999", "t-partition-0", "__x", "%25", "*", "a:b", "1:2:3:4"),
    "tenant": (*("public",) * 8, "a", "new"),
    "namespace": (*("default",) * 8, "b", "new"),
    "cluster": ("standalone", "standalone", "x"),
    "topic": (*("t",) * 5, "t2", "p", "p-partition-0", "new"),
    "domain": (*("persistent",) * 6, "non-persistent"),
    "subName": ("s", "s2", "new"),
    "subscription": ("s", "s2"),
    "bundle": ("0x00000000_0x40000000", "0x40000000_0x80000000", "x", "0x0_0x1"),
    "messageId": ("0:0", "1:1:-1", "-1:-1", "x"),
    "messagePosition": ("1", "0", "-1", "x"),
    "timestamp": ("0", "1767225600000", "-1"),
    "numMessages": ("1", "0", "-1", "9999999999"),
    "role": ("admin", "r"),
    "key": ("maxTopicsPerNamespace", "brokerShutdownTimeoutMs", "x"),
    "value": ("5", "0", "-1", "x", "true"),
    "expireTimeInSeconds": ("0", "5", "-1"),
    "ledgerId": ("0", "1", "2", "-1"),
    "entryId": ("0", "1", "-1"),
    "version": ("0", "1", "-1", "x"),
}  # fmt: skip
QUERIES = ("force=true", "authoritative=true", "mode=ALL", "mode=PERSISTENT", "local=true", "x=%zz",
           "includeSystemTopic=true", "checkAllowAutoCreation=true", "metadata=true", "perPartition=true",  # noqa: E501
           "bundle=0x00000000_0x40000000", "applied=true", "topicsPattern=.*", "properties=a%3Db",
           "getPreciseBacklog=true", "subscriptionBacklogSize=true", "isGlobal=x", "=", "&", "force=x",  # noqa: E501
           "numPartitions=-1", "replicated=true", "messageId=0", "backlogQuotaType=message_age",
           "backlogQuotaType=destination_storage", "delete=true", "ledgerId=1", "entryId=-1",
           "deleteSchema=true", "customProperties=x", "schemaName=x", "hash=1",
           "limit=-5")  # fmt: skip
_JSON, _TEXT = b"Content-Type: application/json", b"Content-Type: text/plain"
HEADERS: tuple[tuple[bytes, ...], ...] = (
    (),
    (_JSON,),
    (_JSON, b"Accept: application/json"),
    (_TEXT,),
    (b"Content-Type: application/octet-stream",),
    (b"Content-Type: multipart/form-data; boundary=x",),
    (b"Content-Type: \xff",),
    (b"Accept: text/plain",),
    (b"Accept: */*;q=x, ,;", _JSON),
    (b"Accept: application/openmetrics-text; version=1.0.0",),
    (b"Accept-Encoding: gzip", _JSON),
    (b"Content-Encoding: gzip", _JSON),
    (b"If-None-Match: \"x\"",),
    (b"Origin: http://elsewhere", _JSON),
    (b"Authorization: Bearer x",),
    (b"Expect: 100-continue", _JSON),
    (b"Connection: close", _JSON),
    (b"Transfer-Encoding: chunked", _JSON),
    (b"X-Forwarded-For: \xe4",),
    (b"Range: bytes=0-1",),
)  # fmt: skip
_DOCUMENTS: tuple[object, ...] = (
    {}, [], None, True, 0, 1, -1, 5, 2**31, 2**63, 1.5, "", "x", "ALL", [1], ["a"], {"a": 1}, {"a": "b"},  # noqa: E501
    {"allowedClusters": ["standalone"], "adminRoles": ["r"]}, {"allowedClusters": None},
    {"bundles": {"numBundles": 4}}, {"bundles": {"numBundles": -1}}, {"bundles": 5},
    {"retentionTimeInMinutes": 5, "retentionSizeInMB": 5}, {"retentionTimeInMinutes": "x"},
    {"limit": 5, "limitSize": 5, "limitTime": 5, "policy": "producer_exception"}, {"policy": "x"},
    {"limitSize": -5, "policy": "consumer_backlog_eviction"}, {"managedLedgerMaxMarkDeleteRate": "NaN"},  # noqa: E501
    {"dispatchThrottlingRateInMsg": 5, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 0},
    {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": 2**40},
    {"subscribeThrottlingRatePerConsumer": 5, "ratePeriodInSecond": 30},
    {"type": "AVRO", "schema": '{"type":"record","name":"R","fields":[]}', "properties": {}},
    {"type": "STRING", "schema": "", "properties": {"a": None}}, {"type": "x", "schema": 5},
    {"type": "KEY_VALUE", "schema": "x", "properties": {"kv.encoding.type": "INLINE"}},
    {"ledgerId": 0, "entryId": 0, "partitionIndex": -1}, {"ledgerId": "x"}, {"entryId": -1},
    {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
    {"allowAutoTopicCreation": True, "topicType": "x"}, {"allowAutoSubscriptionCreation": False},
    {"inactiveTopicDeleteMode": "delete_when_no_subscriptions", "maxInactiveDurationSeconds": 5,
     "deleteWhileInactive": True},
    {"active": True, "tickTime": 5, "maxDeliveryDelayInMillis": -5}, {"active": "x", "tickTime": {}},  # noqa: E501
    ["produce", "consume"], ["x"], ["Exclusive", "Shared"], ["Exclusive", 5], "BACKWARD", "UNDEFINED",  # noqa: E501
    {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 3},
    {"properties": {"k": "v"}, "partitions": 3}, {"partitions": 3, "properties": {"k": 5}},
    {"msgRateIn": 1, "msgRateOut": 1, "bandwidthIn": 1, "bandwidthOut": 1, "memory": 1, "dynamic": True},  # noqa: E501
    {"ids": ["AAE="]}, {"name": "x", "selection": {}},
)  # fmt: skip
BODIES = (
    *(json.dumps(one).encode() for one in _DOCUMENTS),
    b"{", b"\xff", b'"\\ud800"', b"[" * 200, b'{"a":1,"a":2}', b"NaN", b"1e400", b"x=y", b" ", b"\x1f\x8b\x08",  # noqa: E501
    b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--x--\r\n",
)  # fmt: skip
