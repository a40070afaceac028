"""A web page of another site cannot drive the admin REST; programs can."""

import asyncio
import re
from itertools import product
from typing import Any

import aiohttp
import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import digest_of
from broker.messages.topic import PersistentTopic
from proto.names import TopicName
from server.configuration.addresses import ServerUrls
from tests.support.peers.rest_client import RestClient, rest_client
from tests.support.processes.cluster import Cluster, cluster

TOPICS = "/admin/v2/persistent/public/default"
CREATING_GET = f"{TOPICS}/t/partitions?checkAllowAutoCreation=true"
TOPIC = TopicName.parse("persistent://public/default/t")
EVIL = "http://evil.example"


async def answered(
    parts: Cluster, method: str, path: str, headers: dict[str, str], role: str = "broker"
) -> tuple[int, str]:
    """Status and text of a call; ``{own}`` in a header is the server's own host and port."""
    url = parts.part(role).web_service_url
    own = url.removeprefix("http://")
    sent = {name: value.replace("{own}", own) for name, value in headers.items()}
    skipped = ("Content-Type",)  # aiohttp would add it
    async with (
        aiohttp.ClientSession(skip_auto_headers=skipped) as session,
        session.request(method, f"{url}{path}", headers=sent) as answer,
    ):
        return answer.status, await answer.text()


def _is_refusal(text: str) -> bool:
    return "may not change anything here" in text or "does not have that name" in text


PAGES = {
    "another site": {"Origin": EVIL},
    "a file, a sandbox": {"Origin": "null"},
    "another port of this machine": {"Origin": "http://127.0.0.1:1"},
    "a name that leads here (DNS rebinding)": {"Origin": EVIL, "Host": "evil.example"},
    "no URL": {"Origin": "http://[::1"},
    "what a browser says of a script": {"Sec-Fetch-Site": "cross-site"},
    "what a browser says of a neighbour": {"Sec-Fetch-Site": "same-site"},
}


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
@pytest.mark.parametrize("page", PAGES)
async def test_a_page_of_another_site_is_refused(page: str, profile: str) -> None:
    async with cluster(profile=profile) as parts:
        for method, path in (
            ("PUT", f"{TOPICS}/t"),
            ("DELETE", f"{TOPICS}/t"),
            ("POST", "/admin/v2/brokers/configuration/maxTenants/5"),
            ("GET", CREATING_GET),
        ):
            status, text = await answered(parts, method, path, PAGES[page])
            assert (status, _is_refusal(text)) == (403, True), text
        assert (await answered(parts, "GET", TOPICS, {}))[1] == "[]"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("page", PAGES)
async def test_a_page_of_another_site_creates_no_partition(page: str, method: str) -> None:
    topics = TOPICS.replace("persistent", "non-persistent")
    async with cluster(profile="pulsar") as parts, rest_client(parts.broker) as rest:
        # As shipped, partitions of a non-persistent topic exist after first use
        await rest.done("PUT", f"{topics}/np/partitions", "2")
        for what in ("subscriptions", "subscriptions/", "subscriptions;x", "%73ubscriptions"):
            path = f"{topics}/np-partition-1/{what}"
            await answered(parts, method, path, PAGES[page])
        assert (await rest.ask("GET", topics)).value == []
        status, text = await answered(parts, "GET", path.replace("%73", "s"), PAGES[page])
        assert (status, _is_refusal(text)) == (403, True), text
        # Programs are answered
        if "Host" not in PAGES[page]:
            status, _ = await answered(parts, method, f"{topics}/np/subscriptions", PAGES[page])
            assert status != 403
        assert (await rest.ask("GET", path.replace("%73", "s"))).value == []
        assert len((await rest.ask("GET", topics)).value) == 1


NAMES = {"tenant": "public", "namespace": "default", "cluster": "standalone", "subName": "new"}
NAMES |= {"bundle": "0x00000000_0x40000000", "messagePosition": "1"}
ASKED_ABOUT = (("persistent", "t"), ("persistent", "none"), ("non-persistent", "np-partition-1"))
ASKED = "metadata=true&applied=true&checkAllowAutoCreation=true&authoritative=true&force=true"
SHOWN = (
    *(f"/admin/v2/{domain}/public/default" for domain in ("persistent", "non-persistent")),
    f"{TOPICS}/partitioned",
    f"{TOPICS}/t/subscriptions",
    f"{TOPICS}/t/backlog",
    "/admin/v2/namespaces/public/default",
    "/admin/v2/namespaces/public",
    "/admin/v2/tenants",
    "/admin/v2/schemas/public/default/t/schemas",
    "/admin/v2/brokers/configuration/values",
)


async def _state(rest: RestClient) -> dict[str, str]:
    """All kept state that REST shows."""
    return {path: (await rest.ask("GET", path)).text for path in SHOWN}


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_no_documented_get_changes_state_for_a_page_of_another_site(profile: str) -> None:
    quota = '{"limitSize": 10, "policy": "consumer_backlog_eviction"}'
    with_faults = {"floodgateFaultsEnabled": "true"}
    async with (
        cluster(profile=profile, both=with_faults) as parts,
        rest_client(parts.broker) as rest,
    ):
        await rest.done("PUT", f"{TOPICS}/t")
        await rest.done("PUT", f"{TOPICS}/t/subscription/s", '"earliest"')
        topics = TOPICS.replace("persistent", "non-persistent")
        await rest.done("PUT", f"{topics}/np/partitions", "2")
        await rest.done("POST", "/admin/v2/namespaces/public/default/backlogQuota", quota)
        topic = await parts.broker.messaging.loaded_topics.get(TOPIC)
        assert isinstance(topic, PersistentTopic)
        for _ in range(3):
            topic.ledger.append(b"more than ten bytes", digest_of(pb.MessageMetadata()))
        before = await _state(rest)
        statuses = await _ask_for_all(parts.broker.web_service_url)
        assert 200 in statuses
        assert await _state(rest) == before


async def _ask_for_all(base: str) -> set[int]:
    """Make every described request as a foreign site's page, about topics of each kind."""
    statuses = set()
    headers = PAGES["what a browser says of a script"]
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.get(f"{base}/openapi.json") as answer:
            described: dict[str, dict[str, Any]] = (await answer.json())["paths"]
        reads = [path for path, item in described.items() if "get" in item]
        for path, (domain, topic) in product(reads, ASKED_ABOUT):
            names = NAMES | {"domain": domain, "topic": topic}
            full = re.sub(r"\{(\w+)\}", lambda one, names=names: names.get(one[1], "0"), path)
            async with session.get(f"{base}{full}?{ASKED}") as answer:
                await answer.read()
                statuses.add(answer.status)
    return statuses


@pytest.mark.parametrize(
    "form", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
async def test_a_browser_form_without_an_origin_is_answered_415(form: str) -> None:
    async with cluster() as parts:
        status, text = await answered(parts, "PUT", f"{TOPICS}/t", {"Content-Type": form})
        assert (status, "send Content-Type: application/json" in text) == (415, True)


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_pages_of_other_sites_may_read_metrics_unless_the_host_is_foreign(role: str) -> None:
    async with cluster() as parts:
        for headers in PAGES.values():
            status, _ = await answered(parts, "GET", "/metrics/", headers, role)
            assert status == (403 if "Host" in headers else 200)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_a_request_for_a_foreign_host_is_refused(role: str, method: str) -> None:
    async with cluster() as parts:
        for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "", "[::1"):
            assert (await answered(parts, method, "/", {"Host": host}, role))[0] in (400, 403), host


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        ("Named.example,.below.example", "named.example:9", 200),
        ("Named.example,.below.example", "a.b.below.example.", 200),
        ("Named.example,.below.example", "below.example", 403),
        ("*", "anything.example", 200),
        ("", "LOCALHOST:1", 200),
        ("", "[::1]:1", 200),
        ("", "192.0.2.7", 200),
    ],
)
async def test_only_allowed_hosts_are_served(allowed: str, host: str, status: int) -> None:
    async with cluster(both={"floodgateAllowedHosts": allowed}) as parts:
        for role in ("broker", "proxy"):
            assert (await answered(parts, "GET", "/", {"Host": host}, role))[0] == status


async def test_answers_forbid_content_type_sniffing() -> None:
    async with cluster() as parts, aiohttp.ClientSession() as session:
        for path in ("/", "/metrics/", TOPICS, "/nothing/here"):
            async with session.get(f"{parts.broker.web_service_url}{path}") as answer:
                assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "application/json"},
        {"Origin": "http://{own}"},
        {"Origin": "http://LOCALHOST:9", "Host": "localhost:9", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://[::1]:9", "Host": "[::1]:9"},
    ],
)
async def test_programs_and_same_origin_pages_may_create_topics(headers: dict[str, str]) -> None:
    async with cluster() as parts:
        assert (await answered(parts, "PUT", f"{TOPICS}/t", headers))[0] == 204
        assert (await answered(parts, "GET", TOPICS, {}))[1] == '["persistent://public/default/t"]'


async def test_a_page_under_the_advertised_address_may_create_topics() -> None:
    async with cluster(broker={"advertisedAddress": "Broker.Example"}) as parts:
        port = parts.broker.web_service_url.rpartition(":")[2]
        parts.broker.urls = ServerUrls(web=f"http://127.0.0.1:{port}")
        headers = {"Origin": "http://broker.example", "Host": "broker.example"}
        assert (await answered(parts, "PUT", f"{TOPICS}/t", headers))[0] == 204


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_a_post_from_another_origin_is_refused_by_broker_and_proxy(role: str) -> None:
    async with cluster() as parts:
        assert (await answered(parts, "POST", "/", {"Origin": EVIL}, role))[0] == 403


async def test_a_request_with_an_origin_but_without_a_host_is_refused() -> None:
    async with cluster() as parts:
        # HTTP 1.0, where Host is optional
        host, port = parts.broker.web_service_url.removeprefix("http://").rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"PUT {TOPICS}/t HTTP/1.0\r\nOrigin: {EVIL}\r\n\r\n".encode())
        status = await reader.readline()
        writer.close()
        assert b" 403 " in status
