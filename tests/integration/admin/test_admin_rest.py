"""The admin REST beyond the recordings: odd names, odd bodies, rules, missing parts."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker.admin.negotiation import METADATA_TYPE
from broker.messages.errors import MessageStoreError
from broker.stores.changes import StoreError
from server.http import MAX_REQUEST_BYTES
from tests.support.peers.rest_client import RestClient, rest_client
from tests.support.processes.cluster import Cluster, cluster

TOPICS = "/admin/v2/persistent/public/default"
NAMESPACES = "/admin/v2/namespaces"
TENANTS = "/admin/v2/tenants"


@asynccontextmanager
async def broker(profile: str = "floodgate", **keys: str) -> AsyncIterator[RestClient]:
    async with cluster(profile=profile, broker=keys) as parts, rest_client(parts.broker) as rest:
        yield rest


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("segment", "local"),
    [
        ("plain", "plain"),
        ("sp%20ace", "sp ace"),
        ("pl+us", "pl us"),
        ("pl%2Bus", "pl+us"),
        ("per%2525cent", "per%25cent"),
        ("sla%252Fsh", "sla%2Fsh"),
        ("uml%C3%A4ut", "umläut"),
        ("%F0%9F%98%80", "😀"),
        ("que%3Fst", "que?st"),
        ("semi%3Bcolon", "semi;colon"),
        ("semi;colon", "semi"),
        ("quo%22te%5C", 'quo"te\\'),
        ("br%7Bace%7D", "br{ace}"),
        ("%2E%2E", ".."),
        ("partitioned", "partitioned"),
    ],
)
async def test_the_topic_segment_of_a_path_is_decoded_once(segment: str, local: str) -> None:
    async with broker() as rest:
        created = await rest.ask("PUT", f"{TOPICS}/{segment}")
        listed = await rest.ask("GET", TOPICS)
        deleted = await rest.ask("DELETE", f"{TOPICS}/{segment}")
        assert (created.status, deleted.status) == (204, 204)
        assert listed.value == [f"persistent://public/default/{local}"]


@pytest.mark.parametrize(
    ("segment", "status", "reason"),
    [
        ("a%2Fb", 412, "Topic name is not valid"),
        ("%20", 412, "Topic name is not valid"),
        ("half%e", 400, "'%' in the path is no percent-encoded character"),
        ("new%0Aline", 412, "Topic name is not valid: it has a control character"),
        ("x" * 2_030, 412, "Topic name is not valid: it has 2058 bytes"),
        ("bad%FF", 400, "'/admin/v2/persistent/public/default/bad%FF' in the path is not UTF-8"),
    ],
)
async def test_an_invalid_topic_name_is_refused(segment: str, status: int, reason: str) -> None:
    async with broker() as rest:
        answer = await rest.ask("PUT", f"{TOPICS}/{segment}")
        assert answer.status == status
        assert answer.reason.startswith(reason)
        assert (await rest.ask("GET", TOPICS)).value == []


async def test_a_subscription_name_with_nul_is_refused_only_with_profile_pulsar() -> None:
    path = f"{TOPICS}/t/subscription/nul%00"
    async with broker() as rest:
        await rest.done("PUT", path)
        assert (await rest.ask("GET", f"{TOPICS}/t/subscriptions")).value == ["nul\0"]
        await rest.done("DELETE", path)
        assert (await rest.ask("GET", f"{TOPICS}/t/subscriptions")).value == []
    async with broker("pulsar") as rest:
        refused = await rest.ask("PUT", path)
        assert (refused.status, "the character NUL (%00)" in refused.reason) == (400, True)


@pytest.mark.parametrize("domain", ["weird", "Persistent", "persistent:"])
async def test_an_unknown_topic_domain_in_the_path_is_answered_404(domain: str) -> None:
    async with broker() as rest:
        assert (await rest.ask("GET", f"/admin/v2/{domain}/public/default")).status == 404


# -- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "{bad",
        "[1]",
        '"text"',
        "7",
        '{"a": [1]}',
        '{"a": null}',
        '{"a": NaN}',
        '{"a": "\\ud800"}',
        '{"\\ud800": "a"}',
        "[" * 100_000,
        "9" * 10_000,
        b"\xff\xfe",
    ],
)
async def test_a_body_without_valid_properties_is_400_in_plain_text(body: str | bytes) -> None:
    async with broker() as rest:
        answer = await rest.ask("PUT", f"{TOPICS}/t", body)
        assert (answer.status, answer.headers["Content-Type"]) == (400, "text/plain")
        assert "body" in answer.text
        assert len(answer.text) < 400
        assert (await rest.ask("GET", TOPICS)).value == []


@pytest.mark.parametrize(
    ("body", "kept"),
    [(None, {}), ("", {}), ("null", {}), ("{}", {}), ('{"a":"b","n":1,"t":true}', None)],
)
async def test_a_body_may_be_empty_or_hold_properties(body: str | None, kept: object) -> None:
    async with broker() as rest:
        await rest.done("PUT", f"{TOPICS}/t", body)
        properties = (await rest.ask("GET", f"{TOPICS}/t/properties")).value
        assert properties == ({"a": "b", "n": "1", "t": "true"} if kept is None else kept)


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        ("application/json; charset=utf-8", 204),
        ("text/json", 204),
        ("application/x-www-form-urlencoded", 415),
        ("text/plain", 415),
        ("x", 400),
    ],
)
async def test_a_body_must_be_declared_as_json(media_type: str, status: int) -> None:
    async with broker() as rest:
        assert (await rest.ask("PUT", f"{TOPICS}/t", '{"a":"b"}', media_type)).status == status


@pytest.mark.parametrize(("path", "body"), [("p/partitions", "3"), ("t", None), ("t", '{"a":"b"}')])
async def test_a_trailing_slash_in_a_path_is_ignored(path: str, body: str | None) -> None:
    async with broker() as rest:
        created = await rest.ask("PUT", f"{TOPICS}/{path}/", body)
        listed = await rest.ask("GET", f"{TOPICS}/")
        assert created.status == 204
        assert listed.value


@pytest.mark.parametrize("path", ["//t", "/t//partitions", "//partitioned"])
async def test_a_path_with_an_empty_segment_is_answered_404(path: str) -> None:
    async with broker() as rest:
        assert (await rest.ask("GET", f"{TOPICS}{path}")).status == 404


async def test_a_request_that_does_not_accept_json_is_answered_406() -> None:
    async with broker() as rest:
        answer = await rest.ask("GET", TOPICS, accept="text/html")
        assert (answer.status, "text/html" in answer.reason) == (406, True)


async def test_a_body_above_the_size_limit_is_answered_413() -> None:
    async with broker() as rest:
        answer = await rest.ask("PUT", f"{TOPICS}/t", io.BytesIO(b" " * (MAX_REQUEST_BYTES + 1)))
        assert answer.status == 413
        assert answer.reason


@pytest.mark.parametrize(
    ("body", "count"),
    [("3", 3), ('"3"', 3), ("3.7", 3), ('{"partitions":2}', 2), ('{"partitions":2,"x":1}', 2)],
)
async def test_a_partition_count_may_be_number_text_or_metadata(body: str, count: int) -> None:
    async with broker() as rest:
        media_type = METADATA_TYPE if body.startswith("{") else "application/json"
        await rest.ask("PUT", f"{TOPICS}/p/partitions", body, media_type)
        answer = await rest.ask("GET", f"{TOPICS}/p/partitions")
        assert answer.value == {"partitions": count, "deleted": False}


@pytest.mark.parametrize(
    "body", [None, "abc", "[3]", "true", "1e999", "99999999999", '{"partitions":2}', '"x"']
)
@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_an_invalid_partition_count_is_answered_400(method: str, body: str | None) -> None:
    async with broker() as rest:
        assert (await rest.ask(method, f"{TOPICS}/p/partitions", body)).status == 400


# -- methods --------------------------------------------------------------------------------------


async def test_head_answers_as_get_without_a_body() -> None:
    async with broker() as rest:
        answer = await rest.ask("HEAD", TOPICS)
        assert (answer.status, answer.text) == (200, "")
        assert answer.headers["Content-Type"] == "application/json"


async def test_head_of_the_schema_versions_of_a_topic_has_no_body() -> None:
    async with cluster() as parts:
        host, port = parts.broker.web_service_url.removeprefix("http://").rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        path = "/admin/v2/schemas/public/default/t/schemas"
        request = f"HEAD {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b"\r\n\r\n")
        assert b"getSchemaResponses" not in answer


async def test_options_lists_the_allowed_methods() -> None:
    async with broker() as rest:
        answer = await rest.ask("OPTIONS", f"{TOPICS}/t")
        assert answer.status == 200
        assert (answer.headers["Allow"], answer.text) == (
            "DELETE,OPTIONS,PUT",
            "DELETE, OPTIONS, PUT",
        )


@pytest.mark.parametrize(("method", "path"), [("GET", f"{TOPICS}/t"), ("PATCH", TENANTS)])
async def test_an_unsupported_method_is_405_with_allowed_methods(method: str, path: str) -> None:
    async with broker() as rest:
        answer = await rest.ask(method, path)
        assert answer.status == 405
        assert answer.reason.startswith(f"{method} is not allowed here: ")
        assert "OPTIONS" in answer.headers["Allow"]


# -- tenants and namespaces -----------------------------------------------------------------------


async def test_a_post_updates_a_tenant_and_is_404_for_a_missing_tenant() -> None:
    async with broker() as rest:
        await rest.done("PUT", f"{TENANTS}/t", '{"allowedClusters":["standalone"]}')
        body = '{"allowedClusters":["standalone"],"adminRoles":["a","b"]}'
        await rest.done("POST", f"{TENANTS}/t", body)
        missing = await rest.ask("POST", f"{TENANTS}/none", body)
        assert (await rest.ask("GET", f"{TENANTS}/t")).value == json.loads(body)
        assert (missing.status, missing.reason) == (404, "Tenant none not found")


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (None, 412, "TenantInfo is null"),
        ('{"allowedClusters":[]}', 412, "Clusters cannot be empty or blank"),
        ('{"allowedClusters":[" "]}', 412, "Clusters cannot be empty or blank"),
    ],
)
async def test_a_tenant_must_have_a_cluster(body: str | None, status: int, reason: str) -> None:
    async with broker() as rest:
        answer = await rest.ask("PUT", f"{TENANTS}/t", body)
        assert (answer.status, answer.reason) == (status, reason)


@pytest.mark.parametrize("body", ['{"allowedClusters":"x"}', '{"allowedClusters":[[]]}', "[]"])
async def test_a_malformed_tenant_body_is_answered_400(body: str) -> None:
    async with broker() as rest:
        assert (await rest.ask("PUT", f"{TENANTS}/t", body)).status == 400


async def test_deleting_an_empty_tenant_twice_is_204_then_404() -> None:
    async with broker() as rest:
        await rest.done("PUT", f"{TENANTS}/t", '{"allowedClusters":["standalone"]}')
        answers = [await rest.ask("DELETE", f"{TENANTS}/t") for _ in range(2)]
        assert [answer.status for answer in answers] == [204, 404]
        assert answers[1].reason == "Tenant doesn't exist"


async def test_a_tenant_is_not_deleted_where_deletion_of_its_namespaces_is_not_allowed() -> None:
    async with broker(forceDeleteTenantAllowed="true") as rest:
        await rest.done("PUT", f"{TENANTS}/t", '{"allowedClusters":["standalone"]}')
        await rest.done("PUT", f"{NAMESPACES}/t/a")
        refused = await rest.ask("DELETE", f"{TENANTS}/t?force=true")
        await rest.done("DELETE", f"{NAMESPACES}/t/a")
        await rest.done("DELETE", f"{TENANTS}/t?force=true")
        assert (refused.status, refused.reason) == (
            405,
            "Broker doesn't allow forced deletion of namespaces",
        )


async def test_forced_deletion_removes_namespaces_and_topics_where_it_is_allowed() -> None:
    allowed = {"forceDeleteNamespaceAllowed": "true", "forceDeleteTenantAllowed": "true"}
    async with broker(**allowed) as rest:
        await rest.done("PUT", f"{TENANTS}/t", '{"allowedClusters":["standalone"]}')
        for name in ("a", "b"):
            await rest.done("PUT", f"{NAMESPACES}/t/{name}")
            await rest.done("PUT", f"/admin/v2/persistent/t/{name}/p/partitions", "3")
            await rest.done("PUT", f"/admin/v2/non-persistent/t/{name}/n")
            await rest.done("PUT", f"/admin/v2/persistent/t/{name}/__change_events")
        await rest.done("DELETE", f"{NAMESPACES}/t/a?force=true")
        left = await rest.ask("GET", f"{NAMESPACES}/t")
        await rest.done("DELETE", f"{TENANTS}/t?force=true")
        again = await rest.ask("DELETE", f"{NAMESPACES}/t/a?force=true")
        assert left.value == ["t/b"]
        assert (await rest.ask("GET", f"{TENANTS}/t")).status == 404
        assert again.status == 404


async def test_forced_deletion_of_a_tenant_is_refused_by_default() -> None:
    async with broker() as rest:
        answer = await rest.ask("DELETE", f"{TENANTS}/public?force=true")
        reason = "Broker doesn't allow forced deletion of tenants"
        assert (answer.status, answer.reason) == (405, reason)


@pytest.mark.parametrize(
    ("body", "bundles"),
    [
        (None, 4),
        ('{"bundles":{"numBundles":0}}', 4),
        ('{"bundles":{"numBundles":-1}}', 4),
        ('{"bundles":{"numBundles":3}}', 3),
        ('{"bundles":{"boundaries":[],"numBundles":5}}', 5),
        ('{"bundles":{"boundaries":["0x00000000","0x80000000","0xffffffff"]}}', 2),
        ('{"replication_clusters":["standalone"],"bundles":null}', 4),
    ],
)
async def test_a_namespace_is_created_with_the_requested_bundles(body, bundles) -> None:
    async with broker() as rest:
        await rest.done("PUT", f"{NAMESPACES}/public/n", body)
        answer = (await rest.ask("GET", f"{NAMESPACES}/public/n/bundles")).value
        assert answer["numBundles"] == bundles
        assert len(answer["boundaries"]) == bundles + 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('{"bundles":{"numBundles":100000}}', 412),
        ('{"bundles":{"boundaries":["0x00000000","0x00000007","0xffffffff"]}}', 501),
        ('{"bundles":{"numBundles":"x"}}', 400),
        ('{"bundles":[]}', 400),
        ('{"replication_clusters":["nowhere"]}', 403),
    ],
)
async def test_a_namespace_with_invalid_policies_is_not_created(body: str, status: int) -> None:
    async with broker() as rest:
        answer = await rest.ask("PUT", f"{NAMESPACES}/public/n", body)
        assert answer.status == status
        assert (await rest.ask("GET", f"{NAMESPACES}/public/n")).status == 404


async def test_the_numbers_of_tenants_and_namespaces_are_limited() -> None:
    async with broker(maxTenants="3", maxNamespacesPerTenant="2") as rest:
        tenant = '{"allowedClusters":["standalone"]}'
        await rest.done("PUT", f"{TENANTS}/third", tenant)
        await rest.done("PUT", f"{NAMESPACES}/public/second")
        fourth = await rest.ask("PUT", f"{TENANTS}/fourth", tenant)
        third = await rest.ask("PUT", f"{NAMESPACES}/public/third")
        again = await rest.ask("PUT", f"{NAMESPACES}/public/second")
        assert (fourth.status, third.status, again.status) == (412, 412, 409)


async def test_with_profile_pulsar_a_tenant_may_have_a_namespace_more_than_the_limit() -> None:
    async with broker("pulsar", maxNamespacesPerTenant="2") as rest:
        for name in ("second", "third"):
            await rest.done("PUT", f"{NAMESPACES}/public/{name}")
        again = await rest.ask("PUT", f"{NAMESPACES}/public/third")
        assert again.status == 412


# -- clusters, lookups, brokers -------------------------------------------------------------------


async def test_the_cluster_shows_its_broker_url_and_an_unknown_cluster_is_404() -> None:
    async with broker() as rest:
        there = await rest.ask("GET", "/admin/v2/clusters/standalone")
        missing = await rest.ask("GET", "/admin/v2/clusters/none")
        assert there.value["brokerServiceUrl"].startswith("pulsar://127.0.0.1:")
        assert (missing.status, missing.reason) == (404, "Cluster does not exist")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("persistent/public/default/x?listenerName=external", 412),
        ("persistent/public/default/a%2Fb", 412),
        ("persistent/public/n%201/x", 412),
        ("weird/public/default/x", 404),
        ("persistent/public/none/x/bundle", 404),
    ],
)
async def test_a_failed_rest_lookup_has_a_status_and_a_reason(path: str, status: int) -> None:
    async with broker() as rest:
        answer = await rest.ask("GET", f"/lookup/v2/topic/{path}")
        assert answer.status == status
        assert answer.reason


async def test_the_bundle_found_for_a_topic_lists_the_topic() -> None:
    async with broker() as rest:
        answer = await rest.ask("GET", "/lookup/v2/topic/persistent/public/default/x/bundle")
        assert answer.text.startswith("0x")
        topic = "persistent://public/default/x"
        await rest.done("PUT", f"{TOPICS}/x")
        assert (await rest.ask("GET", f"{TOPICS}?bundle={answer.text}")).value == [topic]


async def test_a_partition_query_creates_the_topic_only_with_check_allow_auto_creation() -> None:
    keys = {"allowAutoTopicCreationType": "partitioned", "defaultNumPartitions": "2"}
    async with broker(**keys) as rest:
        looked = await rest.ask("GET", f"{TOPICS}/p/partitions")
        made = await rest.ask("GET", f"{TOPICS}/p/partitions?checkAllowAutoCreation=true")
        assert looked.status == 404
        assert made.value["partitions"] == 2
        assert len((await rest.ask("GET", TOPICS)).value) == 2


@pytest.mark.parametrize(
    "path", ["/admin/v2/brokers/health", f"{TOPICS}", f"{NAMESPACES}/public/default", TENANTS]
)
async def test_a_failing_metadata_store_is_answered_500_with_its_error(path: str) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        _fail(parts)
        answer = await rest.ask("GET", path)
        assert (answer.status, answer.reason) == (500, "the disk is full")


async def test_a_broker_that_cannot_store_messages_is_not_healthy() -> None:
    async def fail() -> None:
        raise MessageStoreError("the message database cannot be written")

    async with cluster() as parts, rest_client(parts.broker) as rest:
        parts.broker.messaging.store.flushed = fail
        answer = await rest.ask("GET", "/admin/v2/brokers/health")
        assert (answer.status, answer.reason) == (500, "the message database cannot be written")


def _fail(parts: Cluster) -> None:
    async def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    for name in ("snapshot", "policies", "tenants", "configuration"):
        setattr(parts.broker.store, name, fail)


# -- missing parts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{NAMESPACES}/public/default/migration"),
        ("PUT", "/admin/v2/clusters/other"),
        ("GET", "/admin/v2/bookies/all"),
        ("GET", "/admin/v2/broker-stats/metrics"),
        ("GET", "/admin/v2/broker-stats/load-report"),
    ],
)
async def test_an_unsupported_operation_is_501_with_a_reason(method: str, path: str) -> None:
    async with broker() as rest:
        await rest.done("PUT", f"{TOPICS}/t")
        answer = await rest.ask(method, path)
        assert answer.status == 501
        assert "not built here" in answer.reason


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (f"{TOPICS}/none/stats", "Topic persistent://public/default/none not found"),
        (f"{TOPICS}/none/subscriptions", "Topic persistent://public/default/none not found"),
        ("/admin/v2/persistent/public/none/t/stats", "Namespace not found"),
        (f"{NAMESPACES}/public/none/retention", "Namespace does not exist"),
        ("/admin/v2/schemas/public/default/t/schema", "Schema not found"),
    ],
)
async def test_a_request_for_a_missing_resource_is_answered_404(path: str, reason: str) -> None:
    async with broker() as rest:
        answer = await rest.ask("GET", path)
        assert (answer.status, answer.reason) == (404, reason)


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_rest_lookups_count_against_max_concurrent_lookup_request(profile: str) -> None:
    keys, path = {"maxConcurrentLookupRequest": "1"}, "/lookup/v2/topic/persistent/public/default/t"
    async with cluster(profile=profile, broker=keys) as parts, rest_client(parts.broker) as rest:
        with parts.broker.lookups.try_acquire("another"):  # type: ignore[union-attr]
            assert (await rest.ask("GET", path)).status == 503
        assert [(await rest.ask("GET", path)).status for _ in range(2)] == [200, 200]
        assert parts.broker.lookups.pending_requests == 0


# -- configuration at run time --------------------------------------------------------------------


async def test_a_limit_set_over_rest_applies_immediately_and_after_a_restart(tmp_path) -> None:
    keys = {"metadataStoreUrl": f"sqlite:///{tmp_path}/topics.db"}
    path = "/admin/v2/brokers/configuration"
    async with cluster(broker=keys) as parts, rest_client(parts.broker) as rest:
        await rest.done("POST", f"{path}/maxTopicListInFlightHeapMemSizeMB/7")
        await rest.done("POST", f"{path}/pulsarChannelWriteBufferLowWaterMark/1000")
        await rest.done("POST", f"{path}/maxConcurrentLookupRequest/3")
        assert parts.broker.limiter.statistics().heap.max_permits == 7 * 2**20
        assert parts.broker.flow.rules.marks.low_bytes == 1_000
        assert parts.broker.lookups.max_requests == 3
    async with cluster(broker=keys) as parts, rest_client(parts.broker) as rest:
        assert parts.broker.limiter.statistics().heap.max_permits == 7 * 2**20
        assert parts.broker.flow.rules.marks.low_bytes == 1_000
        assert parts.broker.lookups.max_requests == 3
        await rest.done("DELETE", f"{path}/maxConcurrentLookupRequest")
        assert parts.broker.lookups.max_requests == 50_000
        assert (await rest.ask("GET", f"{path}/values")).value == {
            "maxTopicListInFlightHeapMemSizeMB": "7",
            "pulsarChannelWriteBufferLowWaterMark": "1000",
        }


async def test_an_invalid_dynamic_value_is_answered_412_with_key_and_allowed_values() -> None:
    async with broker() as rest:
        answer = await rest.ask(
            "POST", "/admin/v2/brokers/configuration/maxTopicListInFlightHeapMemSizeMB/lots"
        )
        assert answer.status == 412
        expected = "maxTopicListInFlightHeapMemSizeMB='lots': expected a whole number from"
        assert answer.reason.startswith(expected)


async def test_a_dynamic_value_may_have_an_encoded_slash() -> None:
    async with broker() as rest:
        path = "/admin/v2/brokers/configuration"
        await rest.done("POST", f"{path}/loadBalancerLoadSheddingStrategy/a%2Fb")
        values = (await rest.ask("GET", f"{path}/values")).value
        runtime = (await rest.ask("GET", f"{path}/runtime")).value
        assert values == {"loadBalancerLoadSheddingStrategy": "a/b"}
        assert runtime["loadBalancerLoadSheddingStrategy"] == "a/b"


async def test_a_partition_limit_changed_at_run_time_applies_to_the_next_topic() -> None:
    async with broker() as rest:
        path = "/admin/v2/brokers/configuration/maxNumPartitionsPerPartitionedTopic"
        await rest.done("POST", f"{path}/2")
        refused = await rest.ask("PUT", f"{TOPICS}/p/partitions", "3")
        await rest.done("DELETE", path)
        allowed = await rest.ask("PUT", f"{TOPICS}/p/partitions", "3")
        assert refused.status == 406
        assert refused.reason == "Number of partitions should be less than or equal to 2"
        assert allowed.status == 204
