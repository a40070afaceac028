"""LOOKUP and PARTITIONED_METADATA: a topic's location and number of partitions."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.ownership.open_ownership import SoleOwnership
from broker.stores.changes import StoreError, TopicChanges
from broker.stores.memory import MemoryStore
from broker.topics.lookup import LookupHandler, LookupOutcomes
from broker.topics.rules import TopicRules
from broker.topics.service import TopicService
from proto.names import NamespaceName
from server.configuration.addresses import ServerUrls
from server.connection.request_errors import RequestError, UnansweredRequestError
from tests.support.clocks.manual_clock import ManualClock

NAMESPACE = NamespaceName.parse("tenant/ns")
PLAIN, PARTED = "persistent://tenant/ns/plain", "persistent://tenant/ns/parted"
TOPICS = TopicChanges(
    [PLAIN.encode(), *(f"{PARTED}-partition-{n}".encode() for n in range(4))], (), {PARTED: 4}
)
INVALID = ["", " ", "topic://tenant/ns/x", "tenant/ns", "persistent://a/b/c/d", "persistent://a/b/"]


async def handler(
    url: str = "pulsar://10.0.0.1:6650",
    allowed: bool = True,
    partitions: int = 0,
    as_shipped: bool = False,
    alone: bool = True,
    max_topics: int = 0,
) -> LookupHandler:
    store = MemoryStore()
    await store.apply(NAMESPACE, TOPICS)
    rules = TopicRules(auto_creation=allowed, auto_partitions=partitions, max_topics=max_topics)
    topics = TopicService(store, lambda _: rules)
    ownership = SoleOwnership(lambda: ServerUrls(url, "http://10.0.0.1:8080"))
    ownership.alone = alone
    outcomes = LookupOutcomes(ManualClock())
    return LookupHandler(store, ownership, topics, outcomes, pulsar_compatible=as_shipped)


def lookup_of(topic: str, **fields: object) -> pb.CommandLookupTopic:
    return pb.CommandLookupTopic(topic=topic, request_id=3, **fields)


def partitions_of(topic: str, **fields: object) -> pb.CommandPartitionedTopicMetadata:
    return pb.CommandPartitionedTopicMetadata(topic=topic, request_id=3, **fields)


@pytest.mark.parametrize("topic", [PLAIN, PARTED, "tenant/ns/plain", "persistent://tenant/ns/new"])
async def test_this_broker_serves_every_topic_of_its_namespaces(topic: str) -> None:
    found = await (await handler()).lookup(lookup_of(topic))
    assert found.request_id == 3
    assert found.response == pb.CommandLookupTopicResponse.Connect
    assert found.brokerServiceUrl == "pulsar://10.0.0.1:6650"
    assert found.authoritative


@pytest.mark.parametrize(
    ("url", "through"),
    [
        ("pulsar://127.0.0.1:6650", True),
        ("pulsar://localhost:6650", True),
        ("pulsar://[::1]:6650", True),
        ("pulsar://10.0.0.1:6650", False),
        ("pulsar://broker.example:6650", False),
    ],
)
async def test_a_loopback_address_is_reached_through_the_service_url(url, through) -> None:
    found = await (await handler(url)).lookup(lookup_of(PLAIN))
    assert found.proxy_through_service_url is through


async def test_with_several_brokers_no_broker_is_reached_through_the_service_url() -> None:
    found = await (await handler("pulsar://127.0.0.1:6650", alone=False)).lookup(lookup_of(PLAIN))
    # All are named
    assert not found.proxy_through_service_url


@pytest.mark.parametrize("topic", INVALID)
@pytest.mark.parametrize("kind", ["lookup", "partitions"])
async def test_an_invalid_topic_name_is_refused(kind: str, topic: str) -> None:
    handled = await handler()
    request = lookup_of(topic) if kind == "lookup" else partitions_of(topic)
    with pytest.raises(RequestError) as caught:
        await getattr(handled, kind)(request)
    assert caught.value.server_error == pb.InvalidTopicName
    assert caught.value.message.startswith("Invalid topic name: ")


@pytest.mark.parametrize("kind", ["lookup", "partitions"])
async def test_a_missing_namespace_is_answered_topic_not_found(kind: str) -> None:
    handled = await handler()
    topic = "persistent://tenant/nowhere/t"
    request = lookup_of(topic) if kind == "lookup" else partitions_of(topic)
    with pytest.raises(RequestError) as caught:
        await getattr(handled, kind)(request)
    assert caught.value.server_error == pb.TopicNotFound
    assert caught.value.message == "Namespace not found"


@pytest.mark.parametrize("listener", ["", "  "])
async def test_a_blank_listener_name_is_ignored(listener: str) -> None:
    assert await (await handler()).lookup(lookup_of(PLAIN, advertised_listener_name=listener))


async def test_an_unknown_listener_name_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        await (await handler()).lookup(lookup_of(PLAIN, advertised_listener_name="external"))
    assert caught.value.server_error == pb.ServiceNotReady
    assert "external" in caught.value.message


@pytest.mark.parametrize(
    ("topic", "count"), [(PARTED, 4), (PLAIN, 0), (f"{PARTED}-partition-1", 0)]
)
async def test_partitioned_metadata_answers_the_partition_count_of_a_known_topic(
    topic: str, count: int
) -> None:
    answer = await (await handler(allowed=False)).partitions(partitions_of(topic))
    assert answer.request_id == 3
    assert answer.response == pb.CommandPartitionedTopicMetadataResponse.Success
    assert answer.partitions == count


async def test_a_missing_namespace_is_reported_before_an_unknown_listener() -> None:
    request = lookup_of("persistent://tenant/nowhere/t", advertised_listener_name="external")
    with pytest.raises(RequestError) as caught:
        await (await handler()).lookup(request)
    assert caught.value.server_error == pb.TopicNotFound


@pytest.mark.parametrize("index", ["4", "9", "2147483647"])
async def test_a_partition_beyond_the_count_of_its_topic_is_not_found(index: str) -> None:
    with pytest.raises(RequestError) as caught:
        await (await handler()).partitions(partitions_of(f"{PARTED}-partition-{index}"))
    assert (caught.value.server_error, caught.value.message) == (pb.TopicNotFound, "")


@pytest.mark.parametrize("partitions", [0, 2])
@pytest.mark.parametrize("name", [f"{PLAIN}-partition-0", "persistent://tenant/ns/no-partition-1"])
async def test_a_partition_without_a_partitioned_topic_is_found_only_with_auto_creation(
    name: str, partitions: int
) -> None:
    handled = await handler(partitions=partitions)
    assert (await handled.partitions(partitions_of(name))).partitions == 0
    with pytest.raises(RequestError) as caught:
        await handled.partitions(partitions_of(name, metadata_auto_creation_enabled=False))
    assert caught.value.server_error == pb.TopicNotFound


async def test_without_auto_creation_a_missing_namespace_is_refused_without_a_message() -> None:
    request = partitions_of("persistent://tenant/no/t", metadata_auto_creation_enabled=False)
    with pytest.raises(RequestError) as caught:
        await (await handler()).partitions(request)
    assert (caught.value.server_error, caught.value.message) == (pb.TopicNotFound, "")


@pytest.mark.parametrize(
    ("as_shipped", "code"), [(True, pb.ServiceNotReady), (False, pb.InvalidTopicName)]
)
async def test_a_partition_of_a_topic_without_a_name_is_refused(as_shipped, code) -> None:
    handled = await handler(as_shipped=as_shipped)
    nameless = "persistent://tenant/ns/-partition-0"
    with pytest.raises(RequestError) as caught:
        await handled.lookup(lookup_of(nameless))
    with pytest.raises(UnansweredRequestError if as_shipped else RequestError):
        await handled.partitions(partitions_of(nameless))
    assert caught.value.server_error == code
    assert "must not be blank" in caught.value.message


@pytest.mark.parametrize(("allowed", "wanted"), [(False, True), (True, False), (False, False)])
async def test_a_missing_topic_is_not_found_unless_client_and_broker_allow_creation(
    allowed, wanted
) -> None:
    handled = await handler(allowed=allowed, partitions=2)
    request = partitions_of(f"{PLAIN}-new", metadata_auto_creation_enabled=wanted)
    with pytest.raises(RequestError) as caught:
        await handled.partitions(request)
    assert caught.value.server_error == pb.TopicNotFound


async def test_a_metadata_request_does_not_create_a_topic_without_partitions() -> None:
    handled = await handler()
    answer = await handled.partitions(partitions_of(f"{PLAIN}-new"))
    assert answer.partitions == 0
    assert len((await handled._store.snapshot(NAMESPACE)).persistent) == 5


async def test_a_missing_partitioned_topic_is_created_once_with_all_its_partitions() -> None:
    handled = await handler(partitions=3)
    counts = [
        (await handled.partitions(partitions_of(f"{PLAIN}-new"))).partitions for _ in range(2)
    ]
    snapshot = await handled._store.snapshot(NAMESPACE)
    assert counts == [3, 3]
    assert snapshot.version == 2
    assert snapshot.partitioned[f"{PLAIN}-new"] == 3
    assert len(snapshot.persistent) == 8


@pytest.mark.parametrize("failing", ["snapshot", "apply"])
async def test_a_failing_store_is_a_metadata_error(failing: str) -> None:
    handled = await handler(partitions=3)

    async def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    setattr(handled._store, failing, fail)
    with pytest.raises(RequestError) as caught:
        await handled.partitions(partitions_of(f"{PLAIN}-new"))
    assert (caught.value.server_error, caught.value.message) == (
        pb.MetadataError,
        "the disk is full",
    )


@pytest.mark.parametrize(
    ("as_shipped", "code"), [(True, pb.ServiceNotReady), (False, pb.NotAllowedError)]
)
async def test_a_topic_above_the_namespace_limit_is_refused_as_retryable_only_in_profile_pulsar(
    as_shipped: bool, code: int
) -> None:
    found = await handler(partitions=2, as_shipped=as_shipped, max_topics=5)
    with pytest.raises(RequestError) as caught:
        await found.partitions(
            partitions_of("persistent://tenant/ns/new", metadata_auto_creation_enabled=True)
        )
    assert caught.value.server_error == code
    assert caught.value.message == "Exceed maximum number of topics in namespace."
