"""The library people import, against a broker in the same loop."""

import asyncio
from collections.abc import AsyncIterator
from unittest.mock import AsyncMock

import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import TopicChanges
from client import ConnectError, PulsarClient, ServerResponseError
from client.exceptions import server_response_error
from client.pulsar_client import LookupResult, NamespaceTopics, topics_request
from proto.names import NamespaceName
from proto.topic_hash import topics_hash
from tests.support.clocks.settle import started
from tests.support.peers.byte_broker import ByteBroker, connected_command
from tests.support.peers.frames import frame
from tests.support.processes.cluster import Cluster, cluster, topic_names

NAMES = topic_names("public/default", 30)
TOPICS = {"public/default": NAMES}
ALL = pb.CommandGetTopicsOfNamespace.ALL
ROLES = ["broker", "proxy"]


@pytest.fixture
async def parts() -> AsyncIterator[Cluster]:
    async with cluster(TOPICS) as parts:
        yield parts


@pytest.mark.parametrize("role", ROLES)
async def test_topics_of_a_namespace_are_listed_with_their_hash(role: str, parts: Cluster) -> None:
    listing = await parts.client(role).topics_of_namespace("public/default", ALL)
    assert listing == NamespaceTopics(tuple(NAMES), topics_hash(NAMES), False, True)


@pytest.mark.parametrize("role", ROLES)
async def test_pattern_and_hash_filter_a_listing(role: str, parts: Cluster) -> None:
    client = parts.client(role)
    filtered = await client.topics_of_namespace("public/default", pattern="public/default/.*7")
    same = await client.topics_of_namespace(
        "public/default", topics_hash=topics_hash(NAMES), properties={"a": "b"}
    )
    assert filtered.topics == tuple(name for name in NAMES if name.endswith("7"))
    assert filtered.filtered
    assert same == NamespaceTopics((), topics_hash(NAMES), False, False)


def test_unset_fields_are_absent_from_the_listing_request() -> None:
    bare = topics_request("a/b", ALL, None, None, None)
    full = topics_request("a/b", ALL, "", "", {"k": "v"})
    assert not bare.HasField("topics_pattern")
    assert not bare.HasField("topics_hash")
    assert full.HasField("topics_pattern")
    assert full.HasField("topics_hash")
    assert [(one.key, one.value) for one in full.properties] == [("k", "v")]


async def test_a_lookup_returns_the_brokers_url_and_the_proxy_flag(parts: Cluster) -> None:
    for role in ROLES:
        found = await parts.client(role).lookup(NAMES[0])
        assert found == LookupResult(parts.broker.service_url, True)


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
@pytest.mark.parametrize("role", ROLES)
async def test_partition_counts_are_returned_and_failures_raised(role: str, profile: str) -> None:
    async with cluster(TOPICS, profile) as parts:
        namespace = NamespaceName.parse("public/default")
        counts = {"persistent://public/default/parted": 3}
        await parts.broker.store.apply(namespace, TopicChanges((), (), counts))
        client = parts.client(role)
        count = await client.partitions("persistent://public/default/parted")
        with pytest.raises(ServerResponseError) as caught:
            await client.partitions("persistent://no/where/topic")
        assert count == 3
        assert caught.value.server_error == pb.TopicNotFound


async def test_a_failed_lookup_is_raised_with_its_code(parts: Cluster) -> None:
    with pytest.raises(ServerResponseError) as caught:
        await parts.client("broker").lookup("persistent://no/where/topic")
    assert str(caught.value) == "TopicNotFound: Namespace not found"


def test_an_error_without_a_message_is_its_code() -> None:
    assert str(server_response_error(pb.TopicNotFound, "")) == "TopicNotFound"


def redirect(request_id: int, url: str) -> bytes:
    answer = pb.CommandLookupTopicResponse(
        request_id=request_id,
        response=pb.CommandLookupTopicResponse.Redirect,
        brokerServiceUrl=url,
    )
    kind = pb.BaseCommand.LOOKUP_RESPONSE
    return frame(pb.BaseCommand(type=kind, lookupTopicResponse=answer))


async def test_a_lookup_redirect_is_followed_to_the_named_broker(parts: Cluster) -> None:
    async with ByteBroker(connected_command()) as first:
        client = PulsarClient(first.url)
        asked = await started(client.lookup(NAMES[0]))
        far = await first.connection()
        await far.reader.readexactly(4)
        far.writer.write(redirect(0, parts.broker.service_url))
        assert (await asked).broker_service_url == parts.broker.service_url
        await client.close()


async def test_endless_redirects_of_a_lookup_are_abandoned_after_20() -> None:
    async with ByteBroker(connected_command()) as broker:
        client = PulsarClient(broker.url)
        asked = await started(client.lookup(NAMES[0]))
        far = await broker.connection()
        for number in range(21):
            await far.reader.readexactly(4)
            far.writer.write(redirect(number, broker.url))
            await far.reader.read(65_536)
        with pytest.raises(ConnectError, match="redirected more than 20 times"):
            await asked
        await client.close()


def test_an_invalid_service_url_is_refused_immediately() -> None:
    with pytest.raises(ConnectError, match="is not a service URL"):
        PulsarClient("http://127.0.0.1:8080")


async def test_an_async_with_block_closes_the_client(parts: Cluster) -> None:
    async with PulsarClient(parts.broker.service_url) as client:
        cnx = await client.connect()
    await cnx.wait_closed()


def connect_to(**fields: object) -> pb.CommandLookupTopicResponse:
    connect = pb.CommandLookupTopicResponse.Connect
    return pb.CommandLookupTopicResponse(request_id=0, response=connect, **fields)


@pytest.mark.parametrize(
    ("url", "answer", "found"),
    [
        ("pulsar://h", {"brokerServiceUrl": "pulsar://b:1"}, "pulsar://b:1"),
        (
            "pulsar+ssl://h",
            {"brokerServiceUrl": "pulsar://b:1", "brokerServiceUrlTls": "pulsar+ssl://b:2"},
            "pulsar+ssl://b:2",
        ),
        (
            "pulsar+ssl://h",
            {"brokerServiceUrl": "pulsar://b:1", "proxy_through_service_url": True},
            "pulsar://b:1",
        ),
    ],
)
async def test_a_lookup_selects_the_address_that_fits_tls_and_proxy(url, answer, found) -> None:
    assert PulsarClient(url)._found("t", connect_to(**answer)).broker_service_url == found


@pytest.mark.parametrize(
    ("url", "broker_url", "said"),
    [
        ("pulsar://h", "", "no address:"),
        ("pulsar+ssl://h", "pulsar://b:1", "no address for TLS:"),
    ],
)
async def test_a_lookup_without_an_address_is_refused(url, broker_url, said) -> None:
    with pytest.raises(ConnectError, match=f"the broker of t names {said}"):
        PulsarClient(url)._found("t", connect_to(brokerServiceUrl=broker_url))


@pytest.mark.parametrize(
    ("url", "proxied", "expected"),
    [
        ("pulsar://b:1,c:2", False, (("b", 1), None)),
        ("pulsar://b:1", True, (("h", 6650), "b:1")),
        ("pulsar://[::1]:1", True, (("h", 6650), "[::1]:1")),
        ("pulsar://h", True, (("h", 6650), None)),
    ],
)
async def test_a_broker_is_connected_directly_or_named_to_the_proxy(
    url: str, proxied: bool, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = PulsarClient("pulsar://h")
    asked = []

    async def get(address: object, *, tls: bool, target: str | None = None) -> None:
        asked.append((address, target))

    monkeypatch.setattr(client._pool, "get", get)
    await client.connection_to(LookupResult(url, proxied))
    assert asked == [expected]


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.connection_to(LookupResult("pulsar://b:1", False)),
        lambda client: client.connection_by_url("pulsar://b:1"),
    ],
)
async def test_a_tls_client_never_connects_without_tls(ask, monkeypatch) -> None:
    client = PulsarClient("pulsar+ssl://h")
    monkeypatch.setattr(client._pool, "get", AsyncMock())
    with pytest.raises(ConnectError, match="pulsar://b:1 is without TLS"):
        await ask(client)
    client._pool.get.assert_not_awaited()


async def test_concurrent_callers_with_a_dead_address_continue_with_the_next_address(
    monkeypatch,
) -> None:
    client = PulsarClient("pulsar://dead,alive")
    all_ask = asyncio.Barrier(4)

    async def get(address: tuple[str, int], **_: object) -> str:
        if address[0] == "dead":
            await all_ask.wait()
            raise ConnectError("dead")
        return address[0]

    monkeypatch.setattr(client._pool, "get", get)
    found = await asyncio.gather(*[client.connect() for _ in range(4)])
    assert found == ["alive"] * 4


async def test_an_assigned_broker_is_reached_like_the_last_lookup(parts: Cluster) -> None:
    client = parts.client("proxy")
    looked_up = await client.connection_of(NAMES[0])
    assigned = await client.connection_by_url(parts.broker.service_url)
    assert assigned is looked_up
