"""Requests to the admin REST, and the resulting errors."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from client.admin.errors import (
    AdminAnswerError,
    AdminCredentialsError,
    AdminDisconnectedError,
    AdminRefusedError,
    AdminTimeoutError,
    AdminTlsError,
    AdminUnreachableError,
)
from client.admin.pulsar_admin import PulsarAdmin
from client.admin.rest import MAX_ANSWER_BYTES
from client.authentication.authentication import AuthenticationToken
from proto.names import NamespaceName, TopicName
from tests.support.certificates import PemFiles
from tests.support.peers.stand_in_admin import (
    DONE,
    Given,
    StandInAdmin,
    given,
    refused,
    stand_in_admin,
)

NAMESPACE = NamespaceName.parse("acme/orders")
TOPIC = TopicName.parse("acme/orders/eu 1")
TOPIC_PATH = "/admin/v2/persistent/acme/orders/eu%201"


@pytest.fixture
async def stand_in() -> AsyncIterator[StandInAdmin]:
    async with stand_in_admin() as running:
        yield running


@pytest.fixture
async def admin(stand_in: StandInAdmin) -> AsyncIterator[PulsarAdmin]:
    async with PulsarAdmin(stand_in.url) as connected:
        yield connected


async def all_names(batches: AsyncIterator[list[str]]) -> list[str]:
    return [name async for batch in batches for name in batch]


@asynccontextmanager
async def a_tls_server() -> AsyncIterator[str]:
    """Run a server with an untrusted certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with await asyncio.start_server(_close, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


CHANGES: dict[str, tuple[Callable[[PulsarAdmin], Awaitable[object]], str, object]] = {
    "create": (lambda a: a.topics.create(TOPIC, {"k": "v"}), f"PUT {TOPIC_PATH}", {"k": "v"}),
    "create bare": (lambda a: a.topics.create(TOPIC), f"PUT {TOPIC_PATH}", {}),
    "delete": (lambda a: a.topics.delete(TOPIC), f"DELETE {TOPIC_PATH}", None),
    "force": (
        lambda a: a.topics.delete(TOPIC, force=True), f"DELETE {TOPIC_PATH}?force=true", None,
    ),
    "partitioned": (
        lambda a: a.topics.create_partitioned(TOPIC, 3), f"PUT {TOPIC_PATH}/partitions", 3,
    ),
    "partitioned with properties": (
        lambda a: a.topics.create_partitioned(TOPIC, 3, {"k": "v"}),
        f"PUT {TOPIC_PATH}/partitions", {"partitions": 3, "properties": {"k": "v"}},
    ),
    "grow": (lambda a: a.topics.update_partitioned(TOPIC, 5), f"POST {TOPIC_PATH}/partitions", 5),
    "delete partitioned": (
        lambda a: a.topics.delete_partitioned(TOPIC), f"DELETE {TOPIC_PATH}/partitions", None,
    ),
    "properties": (
        lambda a: a.topics.update_properties(TOPIC, {"k": "v"}),
        f"PUT {TOPIC_PATH}/properties", {"k": "v"},
    ),
    "property": (
        lambda a: a.topics.remove_property(TOPIC, "a&b"),
        f"DELETE {TOPIC_PATH}/properties?key=a%26b", None,
    ),
    "namespace": (
        lambda a: a.namespaces.create(NAMESPACE), "PUT /admin/v2/namespaces/acme/orders", {},
    ),
    "namespace with bundles": (
        lambda a: a.namespaces.create(NAMESPACE, 16, ["one"]),
        "PUT /admin/v2/namespaces/acme/orders",
        {"bundles": {"numBundles": 16}, "replication_clusters": ["one"]},
    ),
    "delete namespace": (
        lambda a: a.namespaces.delete(NAMESPACE), "DELETE /admin/v2/namespaces/acme/orders", None,
    ),
    "tenant": (
        lambda a: a.tenants.create("acme", ["ann"], ["one"]),
        "PUT /admin/v2/tenants/acme", {"adminRoles": ["ann"], "allowedClusters": ["one"]},
    ),
    "delete tenant": (
        lambda a: a.tenants.delete("acme", force=True), "DELETE /admin/v2/tenants/acme?force=true",
        None,
    ),
    "dynamic": (
        lambda a: a.brokers.update_dynamic("key", "a/b"),
        "POST /admin/v2/brokers/configuration/key/a%2Fb", None,
    ),
    "take back": (
        lambda a: a.brokers.delete_dynamic("key"), "DELETE /admin/v2/brokers/configuration/key",
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
async def test_each_change_sends_the_request_and_body_of_pulsar_admin(
    change, stand_in, admin
) -> None:
    work, line, body = CHANGES[change]
    stand_in.answers[line] = DONE
    await work(admin)
    (asked,) = stand_in.asked
    assert (json.loads(asked.body) if asked.body else None) == body


async def test_partitions_with_properties_are_created_with_their_own_media_type(
    stand_in, admin
) -> None:
    stand_in.answers[f"PUT {TOPIC_PATH}/partitions"] = DONE
    await admin.topics.create_partitioned(TOPIC, 2)
    await admin.topics.create_partitioned(TOPIC, 2, {"k": "v"})
    assert [asked.media_type for asked in stand_in.asked] == [
        "application/json", "application/vnd.partitioned-topic-metadata+json",
    ]  # fmt: skip


async def test_persistent_topics_are_listed_before_non_persistent_topics(stand_in, admin) -> None:
    stand_in.answers["GET /admin/v2/persistent/acme/orders"] = given(["p1", "p2"])
    stand_in.answers["GET /admin/v2/non-persistent/acme/orders"] = given(["n1"])
    assert await all_names(admin.topics.list(NAMESPACE)) == ["p1", "p2", "n1"]


async def test_no_name_is_yielded_when_a_later_list_is_refused(stand_in, admin) -> None:
    stand_in.answers["GET /admin/v2/persistent/acme/orders"] = given(["p1"])
    stand_in.answers["GET /admin/v2/non-persistent/acme/orders"] = refused(403, "no")
    with pytest.raises(AdminRefusedError):
        await anext(admin.topics.list(NAMESPACE))


async def test_the_filters_of_a_topic_listing_become_its_query(
    stand_in: StandInAdmin, admin: PulsarAdmin
) -> None:
    line = (
        "GET /admin/v2/persistent/acme/orders"
        "?bundle=0x00000000_0x40000000&includeSystemTopic=true&properties=team%3Dred%2Ctier%3D1"
    )
    stand_in.answers[line] = given(["found"])
    names = admin.topics.list(
        NAMESPACE,
        ["persistent"],
        bundle="0x00000000_0x40000000",
        include_system_topics=True,
        properties={"team": "red", "tier": "1"},
    )
    assert await all_names(names) == ["found"]


async def test_names_are_yielded_before_the_list_has_ended(stand_in, admin) -> None:
    stand_in.answers["GET /admin/v2/persistent/acme/orders"] = Given((b'["first",', None))
    names = admin.topics.list(NAMESPACE, ["persistent"])
    assert await anext(names) == ["first"]
    await names.aclose()


async def test_a_listing_whose_connection_breaks_raises_a_disconnected_error(
    stand_in, admin
) -> None:
    stand_in.answers["GET /admin/v2/tenants"] = Given((b'["a","b"',), breaks=True)
    with pytest.raises(AdminDisconnectedError, match=r"127\.0\.0\.1:\d+ broke off"):
        await admin.tenants.list()


async def test_a_listing_that_ends_within_its_array_raises_an_answer_error(stand_in, admin) -> None:
    stand_in.answers["GET /admin/v2/tenants"] = Given((b'["a","b"',))
    with pytest.raises(AdminAnswerError, match="broke off"):
        await admin.tenants.list()


async def test_a_tenant_created_without_clusters_is_allowed_every_cluster_but_global(
    stand_in, admin
) -> None:
    stand_in.answers["GET /admin/v2/clusters"] = given(["one", "global", "two"])
    stand_in.answers["PUT /admin/v2/tenants/acme"] = DONE
    await admin.tenants.create("acme")
    assert json.loads(stand_in.asked[-1].body)["allowedClusters"] == ["one", "two"]


@pytest.mark.parametrize(
    ("given_words", "changed"),
    [
        ({"admin_roles": ["bob"]}, {"adminRoles": ["bob"]}),
        ({"clusters": ["two"]}, {"allowedClusters": ["two"]}),
    ],
)
async def test_an_update_of_a_tenant_keeps_its_unchanged_fields(
    given_words, changed, stand_in, admin
) -> None:
    before = {"adminRoles": ["ann"], "allowedClusters": ["one"]}
    stand_in.answers["GET /admin/v2/tenants/acme"] = given(before)
    stand_in.answers["POST /admin/v2/tenants/acme"] = DONE
    await admin.tenants.update("acme", **given_words)
    assert json.loads(stand_in.asked[-1].body) == before | changed


async def test_a_refusal_carries_status_and_reason(stand_in, admin) -> None:
    stand_in.answers["GET /admin/v2/tenants/acme"] = refused(404, "Tenant does not exist")
    with pytest.raises(AdminRefusedError) as caught:
        await admin.tenants.get("acme")
    assert (caught.value.status, caught.value.reason) == (404, "Tenant does not exist")


async def test_the_first_line_of_a_plain_text_refusal_is_the_reason(stand_in, admin) -> None:
    stand_in.answers["GET /admin/v2/tenants/acme"] = Given((b"bad body\n at line 1",), 400)
    with pytest.raises(AdminRefusedError) as caught:
        await admin.tenants.get("acme")
    assert caught.value.reason == "bad body"


async def test_a_path_that_is_not_served_is_refused_with_a_reason_that_names_the_path(
    admin: PulsarAdmin,
) -> None:
    with pytest.raises(AdminRefusedError) as caught:
        await admin.floodgate.limiter_table()
    assert caught.value.reason == "the server does not serve /admin/v2/floodgate/limiter"


async def test_a_redirect_to_another_broker_is_followed_with_the_same_body(stand_in, admin) -> None:
    elsewhere = f"{TOPIC_PATH}?authoritative=true"
    stand_in.answers[f"PUT {TOPIC_PATH}"] = Given(status=307, location=f"{stand_in.url}{elsewhere}")
    stand_in.answers[f"PUT {elsewhere}"] = DONE
    await admin.topics.create(TOPIC, {"k": "v"})
    assert [asked.body for asked in stand_in.asked] == ['{"k": "v"}'] * 2


@pytest.mark.parametrize("answer", ["hello", "[1]", "null", "[" * 100_000])
async def test_an_answer_that_is_no_object_raises_an_answer_error(answer, stand_in, admin) -> None:
    stand_in.answers["GET /admin/v2/tenants/acme"] = Given((answer.encode(),))
    with pytest.raises(AdminAnswerError, match=re.escape(f"answered '{answer[:20]}")):
        await admin.tenants.get("acme")


async def test_an_answer_above_the_size_limit_is_refused(stand_in, admin) -> None:
    part = bytes(1024 * 1024)
    parts = (part,) * (MAX_ANSWER_BYTES // len(part) + 1)
    stand_in.answers["GET /admin/v2/brokers/version"] = Given(parts)
    with pytest.raises(AdminAnswerError, match="larger than"):
        await admin.brokers.version()


async def test_an_unreachable_server_is_reported_with_its_address() -> None:
    async with PulsarAdmin("http://127.0.0.1:1") as admin:
        with pytest.raises(AdminUnreachableError, match=r"127.0.0.1:1 .*Connection refused"):
            await admin.tenants.list()


async def test_https_to_a_plain_http_port_is_reported_as_a_tls_error(
    stand_in: StandInAdmin,
) -> None:
    url = stand_in.url.replace("http:", "https:")
    async with PulsarAdmin(url) as admin:
        with pytest.raises(AdminTlsError, match=f"{url}: .* does not speak TLS; write http://"):
            await admin.tenants.list()


async def test_an_untrusted_certificate_is_reported_as_a_tls_error() -> None:
    async with a_tls_server() as url, PulsarAdmin(url) as admin:
        with pytest.raises(AdminTlsError, match=r"not trusted \(unable to get .*SSL_CERT_FILE"):
            await admin.tenants.list()


async def test_a_port_that_aborts_the_tls_handshake_is_reported_with_a_cause() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.transport.abort()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with PulsarAdmin(f"https://127.0.0.1:{port}") as admin:
            with pytest.raises(AdminUnreachableError, match=r"reached \(Connection"):
                await admin.tenants.list()


async def test_a_silent_server_is_abandoned_after_the_request_timeout(
    stand_in: StandInAdmin,
) -> None:
    stand_in.answers["GET /admin/v2/brokers/version"] = Given((b"4.", None))
    async with PulsarAdmin(stand_in.url, request_timeout_seconds=0.05) as admin:
        with pytest.raises(AdminTimeoutError, match=r"nothing for 0\.05 s"):
            await admin.brokers.version()


async def test_credentials_are_sent_to_the_broker_that_a_redirect_names(stand_in) -> None:
    async with (
        stand_in_admin() as owner,
        PulsarAdmin(stand_in.url, authentication=AuthenticationToken("a.b.c")) as admin,
    ):
        stand_in.answers[f"DELETE {TOPIC_PATH}"] = Given(
            status=307, location=f"{owner.url}{TOPIC_PATH}"
        )
        owner.answers[f"DELETE {TOPIC_PATH}"] = DONE
        await admin.topics.delete(TOPIC)
        assert [asked.authorization for asked in (*stand_in.asked, *owner.asked)] == [
            "Bearer a.b.c"
        ] * 2


async def test_no_credentials_are_sent_after_a_redirect_from_https_to_http(tmp_path: Path) -> None:
    files = PemFiles(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files.server)
    async with stand_in_admin() as plain, stand_in_admin(tls=context) as stand_in:
        stand_in.answers[f"DELETE {TOPIC_PATH}"] = Given(
            status=307, location=f"{plain.url}{TOPIC_PATH}"
        )
        token = AuthenticationToken("a.b.c")
        async with PulsarAdmin(stand_in.url, 5, token, files.trust) as admin:
            with pytest.raises(AdminCredentialsError, match="redirects from https to http"):
                await admin.topics.delete(TOPIC)
        assert plain.asked == []


@pytest.mark.parametrize("token", ["a.b\nc", "a.b.\u00fc"])
async def test_a_token_invalid_in_a_header_is_refused_and_not_repeated(stand_in, token) -> None:
    async with PulsarAdmin(stand_in.url, authentication=AuthenticationToken(token)) as admin:
        with pytest.raises(AdminCredentialsError, match="a single line of text") as refused:
            await admin.topics.delete(TOPIC)
    assert "a.b" not in str(refused.value)
    assert stand_in.asked == []
