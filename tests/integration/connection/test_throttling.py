"""Too many lookups at once, too many in a queue, too many connections."""

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.memory.dual_limiter import LimitType
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.raw_peer import (
    RawPeer,
    connect_command,
    lookup_command,
    partitions_command,
    topics_command,
)
from tests.support.processes.cluster import cluster, held, topic_names, until
from tests.support.stores.blocked_store import BlockedStore

NAMES = topic_names("public/default", 200)
TOPICS = {"public/default": NAMES}
# A mode without topics would be answered at once.
OF_BOTH_KINDS = {"public/default": [*NAMES, "non-persistent://public/default/one"]}
PROFILES = ["pulsar", "floodgate"]
BROKERS_TEXT = "Failed due to too many pending lookup requests"
PROXYS_TEXT = "Too many concurrent lookup and partitionsMetadata requests"
HEAP_TEXT = "Failed due to heap memory limit exceeded"
TOO_MANY = "Reached the maximum number of connections"


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_broker_without_lookup_permits_refuses_each_kind_with_its_own_response(
    profile: str,
) -> None:
    keys = {"maxConcurrentLookupRequest": "1"}
    async with cluster(TOPICS, profile, broker=keys) as parts:
        store = BlockedStore(parts.broker)
        first, second = await parts.peer("broker"), await parts.peer("broker")
        await first.send(topics_command(1, "public/default"))
        await until(lambda: store.asked)
        await second.send(
            lookup_command(2, NAMES[0]),
            partitions_command(3, NAMES[0]),
            topics_command(4, "public/default"),
        )
        lookup = (await second.command()).lookupTopicResponse
        partitions = (await second.command()).partitionMetadataResponse
        error = (await second.command()).error
        assert [lookup.request_id, partitions.request_id, error.request_id] == [2, 3, 4]
        assert {lookup.error, partitions.error, error.error} == {pb.TooManyRequests}
        assert {lookup.message, partitions.message, error.message} == {BROKERS_TEXT}
        store.go_on.set()
        assert (await first.command()).getTopicsOfNamespaceResponse.request_id == 1


async def test_a_released_lookup_permit_is_reused() -> None:
    async with cluster(TOPICS, broker={"maxConcurrentLookupRequest": "1"}) as parts:
        peer = await parts.peer("broker")
        for number in range(20):
            await peer.send(lookup_command(number, NAMES[0]))
            lookup = (await peer.command()).lookupTopicResponse
            assert lookup.response == pb.CommandLookupTopicResponse.Connect


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("peers", [1, 15])
async def test_a_burst_of_lookups_above_the_limit_is_never_refused(profile, peers) -> None:
    """Recorded: a real broker with 10 places refuses none of 150 lookups in one write."""
    async with cluster(TOPICS, profile, broker={"maxConcurrentLookupRequest": "1"}) as parts:
        herd = [await parts.peer("broker") for _ in range(peers)]
        each = 150 // peers
        for peer in herd:
            await peer.send(
                *(partitions_command(number, NAMES[number]) for number in range(each)),
                *(lookup_command(number, NAMES[number]) for number in range(each)),
            )
        answers = [await peer.command() for peer in herd for _ in range(2 * each)]
        assert len(answers) == 300
        assert {one.partitionMetadataResponse.error for one in answers} == {pb.UnknownError}
        assert {one.lookupTopicResponse.error for one in answers} == {pb.UnknownError}
        assert parts.broker.lookups.pending_requests == 0


async def test_the_proxy_holds_its_own_lookup_permits_until_the_answer() -> None:
    async with cluster(TOPICS, proxy={"maxConcurrentLookupRequests": "1"}) as parts:
        store = BlockedStore(parts.broker)
        first, second = await parts.peer(), await parts.peer()
        await first.send(topics_command(1, "public/default"))
        await until(lambda: store.asked)
        await second.send(
            lookup_command(2, NAMES[0]),
            partitions_command(3, NAMES[0]),
            topics_command(4, "public/default"),
        )
        answers = [await second.command() for _ in range(3)]
        lookup, partitions = answers[0].lookupTopicResponse, answers[1].partitionMetadataResponse
        assert [lookup.request_id, partitions.request_id] == [2, 3]
        assert answers[2].error.request_id == 4
        assert {lookup.message, partitions.message, answers[2].error.message} == {PROXYS_TEXT}
        counters = parts.proxy.counters
        assert counters.rejected_lookup_requests == 1
        assert counters.rejected_partitions_metadata_requests == 1
        assert counters.rejected_get_topics_of_namespace_requests == 1
        store.go_on.set()
        await first.command()


@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_full_heap_queue_refuses_listings_immediately(role: str, profile: str) -> None:
    limits = {f"{role}_limits": {"heap_max_bytes": 2_000_000, "heap_queue_size": 3}}
    keys = {
        "floodgateResponseBuffers": "private",
        "floodgateMaxInFlightResponseBytesPerConnection": "0",
    }
    async with cluster(OF_BOTH_KINDS, profile, **{role: keys}, **limits) as parts:
        limiter = parts.part(role).limiter
        others = await limiter.acquire(LimitType.HEAP_MEMORY, 2_000_000)
        peer = await parts.peer(role)
        await peer.send(*(topics_command(n, "public/default", mode=n % 3) for n in range(3)))
        if profile == "pulsar":
            # A mode's first request measures for the rest, which do not queue meanwhile.
            await peer.send(*(topics_command(n, f"public/ns-{n}") for n in range(3, 6)))
        else:
            await peer.send(*(topics_command(n, "public/default", mode=n % 3) for n in range(3, 6)))
        refused = [(await peer.command()).error for _ in range(3)]
        assert {error.error for error in refused} == {pb.TooManyRequests}
        assert {error.message for error in refused} == {HEAP_TEXT}
        limiter.release(others)
        answers = [(await peer.command()).type for _ in range(3)]
        assert set(answers) == {pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE}


@pytest.mark.parametrize(
    ("role", "kind", "text"),
    [
        ("broker", LimitType.HEAP_MEMORY, HEAP_TEXT),
        ("broker", LimitType.DIRECT_MEMORY, "Cannot acquire permits for direct memory"),
        ("proxy", LimitType.HEAP_MEMORY, HEAP_TEXT),
        ("proxy", LimitType.DIRECT_MEMORY, "Failed due to direct memory limit exceeded"),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_waiter_is_refused_after_its_timeout_and_holds_no_permits(
    profile: str, role: str, kind: LimitType, text: str
) -> None:
    clock = ManualClock()
    async with cluster(TOPICS, profile, clock=clock) as parts:
        limiter = parts.part(role).limiter
        others = await limiter.acquire(kind, limiter.available_permits(kind))
        peer = await parts.peer(role)
        await peer.send(topics_command(1, "public/default"))
        await until(lambda: limiter.queue_size(kind) == 1)
        clock.advance(24.9)
        still_waiting = limiter.queue_size(kind)
        clock.advance(0.2)
        error = (await peer.command()).error
        assert still_waiting == 1
        assert error.error == pb.TooManyRequests
        assert error.message == text
        limiter.release(others)
        assert held(limiter) == {}


@pytest.mark.parametrize(
    "keys",
    [{"maxConcurrentInboundConnections": "2"}, {"maxConcurrentInboundConnectionsPerIp": "2"}],
)
async def test_a_connection_above_the_limit_is_refused_until_another_closes(keys) -> None:
    async with cluster(TOPICS, proxy=keys) as parts:
        first, second = await parts.peer(), await parts.peer()
        third = await parts.stranger()
        error = (await third.command()).error
        assert error.error == pb.NotAllowedError
        assert error.message.startswith(TOO_MANY)
        assert await third.rest() == b""
        first.close()
        await until(lambda: len(parts.proxy.connections) == 1)
        assert (await parts.peer()).address
        assert parts.proxy.counters.rejected_connections == 1
        assert parts.proxy.counters.new_connections == 3
        second.close()


async def test_zero_or_negative_connection_limits_refuse_no_connection() -> None:
    keys = {"maxConcurrentInboundConnections": "0", "maxConcurrentInboundConnectionsPerIp": "-1"}
    async with cluster(TOPICS, proxy=keys) as parts:
        peers: list[RawPeer] = [await parts.stranger() for _ in range(20)]
        for peer in peers:
            await peer.send(connect_command())
        answers = {(await peer.command()).type for peer in peers}
        assert answers == {pb.BaseCommand.CONNECTED}
