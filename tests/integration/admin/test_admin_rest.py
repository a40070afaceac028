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
async def test_a_topic_is_named_by_its_segment_decoded_once(segment: str, local: str) -> None:
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
async def test_a_name_that_cannot_be_is_refused(segment: str, status: int, reason: str) -> None:
    async with broker() as rest:
        answer = await rest.ask("PUT", f"{TOPICS}/{segment}")
        assert answer.status == status
        assert answer.reason.startswith(reason)
        assert (await rest.ask("GET", TOPICS)).value == []


async def test_a_subscription_with_nul_in_its_name_is_deleted_but_as_shipped_refused() -> None:
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
async def test_a_domain_that_does_not_exist_is_a_path_that_does_not_exist(domain: str) -> None:
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
async def test_a_body_that_holds_no_properties_is_400_in_plain_text(body: str | bytes) -> None:
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
async def test_a_body_holds_properties_or_nothing(body: str | None, kept: object) -> None:
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
async def test_a_body_says_that_it_is_json(media_type: str, status: int) -> None:
    async with broker() as rest:
        assert (await rest.ask("PUT", f"{TOPICS}/t", '{"a":"b"}', media_type)).status == status


@pytest.mark.parametrize(("path", "body"), [("p/partitions", "3"), ("t", None), ("t", '{"a":"b"}')])
async def test_a_slash_at_the_end_of_a_path_says_nothing(path: str, body: str | None) -> None:
    async with broker() as rest:
        created = await rest.ask("PUT", f"{TOPICS}/{path}/", body)
        listed = await rest.ask("GET", f"{TOPICS}/")
        assert created.status == 204
        assert listed.value


@pytest.mark.parametrize("path", ["//t", "/t//partitions", "//partitioned"])
async def test_an_empty_segment_is_a_path_that_does_not_exist(path: str) -> None:
    async with broker() as rest:
        assert (await rest.ask("GET", f"{TOPICS}{path}")).status == 404


async def test_who_does_not_accept_json_is_told() -> None:
    async with broker() as rest:
        answer = await rest.ask("GET", TOPICS, accept="text/html")
        assert (answer.status, "text/html" in answer.reason) == (406, True)


async def test_a_body_beyond_its_bound_is_413() -> None:
    async with broker() as rest:
        answer = await rest.ask("PUT", f"{TOPICS}/t", io.BytesIO(b" " * (MAX_REQUEST_BYTES + 1)))
        assert answer.status == 413
        assert answer.reason


@pytest.mark.parametrize(
    ("body", "count"),
    [("3", 3), ('"3"', 3), ("3.7", 3), ('{"partitions":2}', 2), ('{"partitions":2,"x":1}', 2)],
)
async def test_partitions_are_a_number_however_it_is_written(body: str, count: int) -> None:
    async with broker() as rest:
        media_type = METADATA_TYPE if body.startswith("{") else "application/json"
        await rest.ask("PUT", f"{TOPICS}/p/partitions", body, media_type)
        answer = await rest.ask("GET", f"{TOPICS}/p/partitions")
        assert answer.value == {"partitions": count, "deleted": False}


@pytest.mark.parametrize(
    "body", [None, "abc", "[3]", "true", "1e999", "99999999999", '{"partitions":2}', '"x"']
)
@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_what_is_no_number_of_partitions_is_400(method: str, body: str | None) -> None:
    async with broker() as rest:
        assert (await rest.ask(method, f"{TOPICS}/p/partitions", body)).status == 400


# -- methods --------------------------------------------------------------------------------------


async def test_head_answers_as_get_without_a_body() -> None:
    async with broker() as rest:
        answer = await rest.ask("HEAD", TOPICS)
        assert (answer.status, answer.text) == (200, "")
        assert answer.headers["Content-Type"] == "application/json"


async def test_versions_of_a_schema_have_no_body_in_an_answer_to_head() -> None:
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


async def test_options_say_what_is_allowed() -> None:
    async with broker() as rest:
        answer = await rest.ask("OPTIONS", f"{TOPICS}/t")
        assert answer.status == 200
        assert (answer.headers["Allow"], answer.text) == (
            "DELETE,OPTIONS,PUT",
            "DELETE, OPTIONS, PUT",
        )


@pytest.mark.parametrize(("method", "path"), [("GET", f"{TOPICS}/t"), ("PATCH", TENANTS)])
async def test_another_method_is_405_with_those_that_are_allowed(method: str, path: str) -> None:
    async with broker() as rest:
        answer = await rest.ask(method, path)
        assert answer.status == 405
        assert answer.reason.startswith(f"{method} is not allowed here: ")
        assert "OPTIONS" in answer.headers["Allow"]


# -- tenants and namespaces -----------------------------------------------------------------------


async def test_a_tenant_is_changed() -> None:
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
async def test_a_tenant_needs_a_cluster(body: str | None, status: int, reason: str) -> None:
    async with broker() as rest:
        answer = await rest.ask("PUT", f"{TENANTS}/t", body)
        assert (answer.status, answer.reason) == (status, reason)


@pytest.mark.parametrize("body", ['{"allowedClusters":"x"}', '{"allowedClusters":[[]]}', "[]"])
async def test_a_tenant_of_another_form_is_400(body: str) -> None:
    async with broker() as rest:
        assert (await rest.ask("PUT", f"{TENANTS}/t", body)).status == 400


async def test_a_tenant_without_namespaces_is_deleted_once() -> None:
    async with broker() as rest:
        await rest.done("PUT", f"{TENANTS}/t", '{"allowedClusters":["standalone"]}')
        answers = [await rest.ask("DELETE", f"{TENANTS}/t") for _ in range(2)]
        assert [answer.status for answer in answers] == [204, 404]
        assert answers[1].reason == "Tenant doesn't exist"


async def test_deletion_with_force_takes_namespaces_and_topics_where_it_is_allowed() -> None:
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


async def test_deletion_of_a_tenant_with_force_is_not_allowed_by_default() -> None:
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
async def test_a_namespace_has_the_bundles_that_are_asked_for(body, bundles) -> None:
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
async def test_policies_that_cannot_be_kept_are_refused(body: str, status: int) -> None:
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


# -- clusters, lookups, brokers -------------------------------------------------------------------


async def test_the_one_cluster_says_where_it_is() -> None:
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
async def test_a_lookup_that_cannot_be_answered_says_why(path: str, status: int) -> None:
    async with broker() as rest:
        answer = await rest.ask("GET", f"/lookup/v2/topic/{path}")
        assert answer.status == status
        assert answer.reason


async def test_a_topic_tells_its_bundle() -> None:
    async with broker() as rest:
        answer = await rest.ask("GET", "/lookup/v2/topic/persistent/public/default/x/bundle")
        assert answer.text.startswith("0x")
        topic = "persistent://public/default/x"
        await rest.done("PUT", f"{TOPICS}/x")
        assert (await rest.ask("GET", f"{TOPICS}?bundle={answer.text}")).value == [topic]


async def test_a_client_that_asks_for_partitions_makes_the_topic_where_that_is_allowed() -> None:
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
async def test_a_store_that_fails_is_a_sentence(path: str) -> None:
    async with cluster() as parts, rest_client(parts.broker) as rest:
        _fail(parts)
        answer = await rest.ask("GET", path)
        assert (answer.status, answer.reason) == (500, "the disk is full")


async def test_a_broker_that_can_store_no_messages_is_not_healthy() -> None:
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
async def test_what_is_not_built_is_501_with_a_sentence(method: str, path: str) -> None:
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
async def test_what_does_not_exist_is_404_first(path: str, reason: str) -> None:
    async with broker() as rest:
        answer = await rest.ask("GET", path)
        assert (answer.status, answer.reason) == (404, reason)


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_lookups_by_rest_need_a_place_of_those_of_all_lookups(profile: str) -> None:
    keys, path = {"maxConcurrentLookupRequest": "1"}, "/lookup/v2/topic/persistent/public/default/t"
    async with cluster(profile=profile, broker=keys) as parts, rest_client(parts.broker) as rest:
        with parts.broker.lookups.try_acquire("another"):  # type: ignore[union-attr]
            assert (await rest.ask("GET", path)).status == 503
        assert [(await rest.ask("GET", path)).status for _ in range(2)] == [200, 200]
        assert parts.broker.lookups.pending_requests == 0


# -- configuration at run time --------------------------------------------------------------------


async def test_a_limit_set_over_rest_is_in_force_at_once_and_after_a_restart(tmp_path) -> None:
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


async def test_a_bad_value_is_412_with_key_value_and_what_is_allowed() -> None:
    async with broker() as rest:
        answer = await rest.ask(
            "POST", "/admin/v2/brokers/configuration/maxTopicListInFlightHeapMemSizeMB/lots"
        )
        assert answer.status == 412
        expected = "maxTopicListInFlightHeapMemSizeMB='lots': expected a whole number from"
        assert answer.reason.startswith(expected)


async def test_a_value_with_a_slash_is_encoded() -> None:
    async with broker() as rest:
        path = "/admin/v2/brokers/configuration"
        await rest.done("POST", f"{path}/loadBalancerLoadSheddingStrategy/a%2Fb")
        values = (await rest.ask("GET", f"{path}/values")).value
        runtime = (await rest.ask("GET", f"{path}/runtime")).value
        assert values == {"loadBalancerLoadSheddingStrategy": "a/b"}
        assert runtime["loadBalancerLoadSheddingStrategy"] == "a/b"


async def test_a_rule_changed_at_run_time_holds_for_the_next_topic() -> None:
    async with broker() as rest:
        path = "/admin/v2/brokers/configuration/maxNumPartitionsPerPartitionedTopic"
        await rest.done("POST", f"{path}/2")
        refused = await rest.ask("PUT", f"{TOPICS}/p/partitions", "3")
        await rest.done("DELETE", path)
        allowed = await rest.ask("PUT", f"{TOPICS}/p/partitions", "3")
        assert refused.status == 406
        assert refused.reason == "Number of partitions should be less than or equal to 2"
        assert allowed.status == 204
