"""Answers larger than their reservation, the limit, or a frame."""

import asyncio
import pathlib
from dataclasses import dataclass

import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import TopicChanges
from client.exceptions import PulsarException, ServerResponseError
from limiter.memory.dual_limiter import LimitType
from proto.names import NamespaceName
from tests.support.peers.raw_peer import topics_command
from tests.support.processes.cluster import cluster, held, topic_names, until
from tests.support.stores.blocked_store import BlockedStore

BIG = NamespaceName.parse("public/big")
NAMES = topic_names("public/big", 2_000, 800)
TOPICS = {"public/big": NAMES, "public/small": topic_names("public/small", 10)}
NAME_BYTES = 2_000 * 800
HEAP_BYTES = NAME_BYTES + 2_000 * 32
COMMAND_BYTES = pb.BaseCommand(
    type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    getTopicsOfNamespaceResponse=pb.CommandGetTopicsOfNamespaceResponse(
        request_id=0, topics=NAMES, filtered=False, topics_hash="12345678", changed=True
    ),
).ByteSize()
HEAP_KEY = "maxTopicListInFlightHeapMemSizeMB"
DIRECT_KEY = "maxTopicListInFlightDirectMemSizeMB"
MEGABYTE = 1024 * 1024
RECEIVE_BUFFER_BYTES = 4 * MEGABYTE
ESTIMATES = ("exact", "last", "proposal")


async def refusal(parts, role: str) -> ServerResponseError:
    with pytest.raises(ServerResponseError) as caught:
        await parts.client(role).topics_of_namespace("public/big")
    return caught.value


@pytest.mark.parametrize("kind", list(LimitType))
async def test_an_answer_above_its_reservation_waits_and_is_refetched(kind: LimitType) -> None:
    limits = {"heap_max_bytes": 2 * MEGABYTE, "direct_max_bytes": 2 * MEGABYTE}
    async with cluster(TOPICS, proxy_limits=limits) as parts:
        store = BlockedStore(parts.broker, blocked=False)
        others = await parts.proxy.limiter.acquire(kind, MEGABYTE)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(parts.client().topics_of_namespace("public/big"))
            await until(lambda: parts.proxy.limiter.queue_size(kind) == 1)
            waiting = held(parts.proxy.limiter)
            parts.proxy.limiter.release(others)
        assert list(asking.result().topics) == NAMES
        assert store.asked == ["public/big"] * 2
        assert waiting[f"{kind.value} bytes"] == MEGABYTE
        assert held(parts.proxy.limiter) == {}


async def test_an_answer_above_its_estimate_needs_no_second_request_if_memory_is_free() -> None:
    async with cluster(TOPICS) as parts:
        store = BlockedStore(parts.broker, blocked=False)
        listing = await parts.client().topics_of_namespace("public/big")
        assert list(listing.topics) == NAMES
        assert store.asked == ["public/big"]


@dataclass(frozen=True)
class Path:
    """A list that exceeds a limit, and its refusal.

    Attributes:
        role: The refusing server.
        estimate: floodgateSizeEstimate.
        limit: The limit's field and value, bytes.
        size: The excessive size, bytes.
        key: The key that the refusal says to raise.
        store: The broker's store.
    """

    role: str
    estimate: str
    limit: tuple[str, int]
    size: int
    key: str
    store: str = "memory:local"

    def __str__(self) -> str:
        field, limit = self.limit
        return f"{self.role} {self.estimate} {field} {limit} {self.store[:6]}"


HEAP, DIRECT = "heap_max_bytes", "direct_max_bytes"
PATHS = [
    # The store knows the size: refused by the estimate, before the namespace is listed.
    Path("broker", "exact", (HEAP, MEGABYTE), HEAP_BYTES, HEAP_KEY),
    # A namespace outside memory: the first listing reveals its size.
    Path("broker", "exact", (HEAP, MEGABYTE), HEAP_BYTES, HEAP_KEY, "sqlite"),
    # Refused at the reservation's growth, even when the growth alone is within the limit.
    Path("broker", "last", (HEAP, MEGABYTE), HEAP_BYTES, HEAP_KEY),
    Path("broker", "last", (HEAP, HEAP_BYTES - 1), HEAP_BYTES, HEAP_KEY),
    Path("broker", "proposal", (HEAP, MEGABYTE), NAME_BYTES, HEAP_KEY),
    # Refused once the response exists.
    *(
        Path("broker", estimate, (DIRECT, COMMAND_BYTES - 1), COMMAND_BYTES, DIRECT_KEY)
        for estimate in ESTIMATES
    ),
    # Refused by the length in the broker's frame.
    *(
        Path("proxy", estimate, (field, COMMAND_BYTES - 1), COMMAND_BYTES, key)
        for estimate in ESTIMATES
        for field, key in ((HEAP, HEAP_KEY), (DIRECT, DIRECT_KEY))
    ),
    # The answer is within the limit, its names' charge is not.
    Path("proxy", "last", (HEAP, HEAP_BYTES - 1), HEAP_BYTES, HEAP_KEY),
]


@pytest.mark.parametrize("buffers", ["shared", "private"])
@pytest.mark.parametrize("path", PATHS, ids=str)
async def test_an_answer_above_a_limit_is_refused_with_size_limit_and_key_every_time(
    path: Path, buffers: str, tmp_path: pathlib.Path
) -> None:
    keys = {"floodgateSizeEstimate": path.estimate, "floodgateResponseBuffers": buffers}
    store = "memory:local" if path.store == "memory:local" else f"sqlite:///{tmp_path}/topics.db"
    async with cluster(
        TOPICS,
        broker={"metadataStoreUrl": store, **(keys if path.role == "broker" else {})},
        proxy=keys if path.role == "proxy" else {},
        **{f"{path.role}_limits": dict([path.limit])},
    ) as parts:
        for _ in range(3):
            error = await refusal(parts, path.role)
            _, limit = path.limit
            assert error.server_error == pb.TooManyRequests
            assert f" of {path.size} bytes is larger than the {path.role}'s limit" in error.message
            assert f" limit of {limit} bytes: raise {path.key}" in error.message
            assert held(parts.part(path.role).limiter) == {}
            assert parts.part(path.role).lookups.pending_requests == 0
        assert parts.part(path.role).unanswered.total == 0


async def test_a_refused_listing_does_not_affect_other_namespaces() -> None:
    limits = {"heap_max_bytes": MEGABYTE}
    async with cluster(TOPICS, broker_limits=limits, proxy_limits=limits) as parts:
        await refusal(parts, "proxy")
        listing = await parts.client().topics_of_namespace("public/small")
        assert list(listing.topics) == TOPICS["public/small"]


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_a_namespace_that_shrinks_below_the_limit_is_answered_again(role, estimate) -> None:
    keys = {"floodgateSizeEstimate": estimate}
    limits = {f"{role}_limits": {"heap_max_bytes": MEGABYTE}}
    async with cluster(TOPICS, both=keys, **limits) as parts:
        await refusal(parts, role)
        gone = [name.encode() for name in NAMES[1:]]
        await parts.broker.store.apply(BIG, TopicChanges((), gone))
        listing = await parts.client(role).topics_of_namespace("public/big")
        assert list(listing.topics) == NAMES[:1]


async def test_a_refused_pattern_does_not_refuse_a_pattern_with_fewer_matches() -> None:
    async with cluster(TOPICS, proxy_limits={"heap_max_bytes": MEGABYTE}) as parts:
        client = parts.client()
        with pytest.raises(ServerResponseError):
            await client.topics_of_namespace("public/big", pattern="public/big/.*")
        listing = await client.topics_of_namespace(
            "public/big", pattern="public/big/topic-000007x*"
        )
        assert list(listing.topics) == [NAMES[7]]


LIMITED = {"maxMessageSize": "1000000"}
FRAME_BYTES = COMMAND_BYTES + 8
TOO_LARGE = (
    f"the answer of {FRAME_BYTES} bytes is larger than the frame limit of 1010240 bytes: "
    "raise maxMessageSize on broker and proxy, or ask with a pattern that keeps less"
)


@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("limited", ["broker", "proxy", "both"])
async def test_an_answer_above_the_frame_limit_is_refused_with_size_limit_and_key(
    limited: str, role: str
) -> None:
    async with cluster(TOPICS, **{limited: LIMITED}) as parts:
        other = parts.client(role)
        await other.topics_of_namespace("public/small")
        if role == "broker" and limited == "proxy":
            assert list((await other.topics_of_namespace("public/big")).topics) == NAMES
            return
        for _ in range(3):
            error = await refusal(parts, role)
            assert (error.server_error, error.message) == (pb.NotAllowedError, TOO_LARGE)
            assert held(parts.part(role).limiter) == {}
            assert parts.part(role).lookups.pending_requests == 0
        listing = await other.topics_of_namespace("public/small")
        assert list(listing.topics) == TOPICS["public/small"]


async def test_a_proxy_keeps_its_broker_connection_after_an_oversized_answer() -> None:
    async with cluster(TOPICS, proxy=LIMITED) as parts:
        store = BlockedStore(parts.broker, blocked=False)
        connections = parts.broker.connection_counters.created_total
        errors = [await refusal(parts, "proxy") for _ in range(3)]
        assert {error.server_error for error in errors} == {pb.NotAllowedError}
        assert store.asked == ["public/big"] * 3
        assert parts.proxy.limiter.statistics().direct.high_water_permits < FRAME_BYTES // 10
        assert parts.broker.connection_counters.created_total == connections + 1
        assert (await parts.client().topics_of_namespace("public/small")).topics


async def test_a_longer_request_id_can_make_an_answer_exceed_the_frame_limit() -> None:
    # A list that fits with a one-byte request id, like the proxy's own
    async with cluster(TOPICS, both={"maxMessageSize": str(FRAME_BYTES - 10_240)}) as parts:
        peer = await parts.peer("proxy", RECEIVE_BUFFER_BYTES)
        await peer.send(topics_command(1, "public/big"))
        short = await peer.command()
        await peer.send(topics_command(300, "public/big"))
        long = await peer.command()
        assert list(short.getTopicsOfNamespaceResponse.topics) == NAMES
        assert long.error.error == pb.NotAllowedError
        assert f"the answer of {FRAME_BYTES + 1} bytes" in long.error.message
        assert held(parts.proxy.limiter) == {}


async def test_with_a_raised_max_message_size_the_proxy_delivers_a_larger_listing() -> None:
    raised = {"maxMessageSize": "20000000"}
    names = topic_names("public/huge", 7_000, 800)
    async with cluster({"public/huge": names}, both=raised) as parts:
        listing = await parts.client().topics_of_namespace("public/huge")
        assert list(listing.topics) == names


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_with_profile_pulsar_an_oversized_answer_disconnects_its_receiver(role: str) -> None:
    async with cluster(TOPICS, "pulsar", broker=LIMITED) as parts:
        if role == "proxy":
            error = await refusal(parts, "proxy")
            assert error.server_error == pb.ServiceNotReady
            assert error.message.startswith("Disconnected from server at ")
        else:
            with pytest.raises(PulsarException, match="Disconnected from server"):
                await parts.client("broker").topics_of_namespace("public/big")
