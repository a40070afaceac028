"""Answers that are larger than what was reserved, than the limit, than a frame."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.store import TopicChanges
from client.errors import ServerResponseError
from limiter.dual import LimitType
from proto.names import NamespaceName
from tests.support.blocked_store import BlockedStore
from tests.support.cluster import cluster, held, topic_names, until

if TYPE_CHECKING:
    import pathlib

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
ESTIMATES = ("exact", "last", "proposal")


async def refusal(parts, role: str) -> ServerResponseError:
    with pytest.raises(ServerResponseError) as caught:
        await parts.client(role).topics_of_namespace("public/big")
    return caught.value


@pytest.mark.parametrize("kind", list(LimitType))
async def test_an_answer_above_its_reservation_is_drained_and_asked_again(kind: LimitType) -> None:
    # Given
    limits = {"heap_max_bytes": 2 * MEGABYTE, "direct_max_bytes": 2 * MEGABYTE}
    async with cluster(TOPICS, proxy_limits=limits) as parts:
        store = BlockedStore(parts.broker, blocked=False)
        others = await parts.proxy.limiter.acquire(kind, MEGABYTE)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(parts.client().topics_of_namespace("public/big"))
            await until(lambda: parts.proxy.limiter.queue_size(kind) == 1)
            waiting = held(parts.proxy.limiter)
            # When
            parts.proxy.limiter.release(others)
        # Then
        assert list(asking.result().topics) == NAMES
        assert store.asked == ["public/big"] * 2
        assert waiting[f"{kind.value} bytes"] == MEGABYTE
        assert held(parts.proxy.limiter) == {}


async def test_a_grown_answer_needs_no_second_request_while_there_is_memory() -> None:
    # Given
    async with cluster(TOPICS) as parts:
        store = BlockedStore(parts.broker, blocked=False)
        # When
        listing = await parts.client().topics_of_namespace("public/big")
        # Then
        assert list(listing.topics) == NAMES
        assert store.asked == ["public/big"]


@dataclass(frozen=True)
class Path:
    """One way for a list to exceed a limit, and what its refusal says.

    Attributes:
        role: Who refuses.
        estimate: Its floodgateSizeEstimate.
        limit: The limit's field and value, bytes.
        size: What exceeds it, bytes.
        key: What the refusal says to raise.
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
    # A namespace that is not in memory: the first listing finds out.
    Path("broker", "exact", (HEAP, MEGABYTE), HEAP_BYTES, HEAP_KEY, "sqlite"),
    # Refused by the growth of what was reserved, also when the growth itself is within the limit.
    Path("broker", "last", (HEAP, MEGABYTE), HEAP_BYTES, HEAP_KEY),
    Path("broker", "last", (HEAP, HEAP_BYTES - 1), HEAP_BYTES, HEAP_KEY),
    Path("broker", "proposal", (HEAP, MEGABYTE), NAME_BYTES, HEAP_KEY),
    # Refused when the response is there.
    *(
        Path("broker", estimate, (DIRECT, COMMAND_BYTES - 1), COMMAND_BYTES, DIRECT_KEY)
        for estimate in ESTIMATES
    ),
    # Refused by the length that the broker announces.
    *(
        Path("proxy", estimate, (field, COMMAND_BYTES - 1), COMMAND_BYTES, key)
        for estimate in ESTIMATES
        for field, key in ((HEAP, HEAP_KEY), (DIRECT, DIRECT_KEY))
    ),
    # The answer is within the limit, and what its names are charged is not.
    Path("proxy", "last", (HEAP, HEAP_BYTES - 1), HEAP_BYTES, HEAP_KEY),
]


@pytest.mark.parametrize("buffers", ["shared", "private"])
@pytest.mark.parametrize("path", PATHS, ids=str)
async def test_an_answer_above_a_limit_is_refused_with_size_limit_and_key_every_time(
    path: Path, buffers: str, tmp_path: pathlib.Path
) -> None:
    # Given
    keys = {"floodgateSizeEstimate": path.estimate, "floodgateResponseBuffers": buffers}
    store = "memory:local" if path.store == "memory:local" else f"sqlite:///{tmp_path}/topics.db"
    async with cluster(
        TOPICS,
        broker={"metadataStoreUrl": store, **(keys if path.role == "broker" else {})},
        proxy=keys if path.role == "proxy" else {},
        **{f"{path.role}_limits": dict([path.limit])},
    ) as parts:
        for _ in range(3):
            # When
            error = await refusal(parts, path.role)
            # Then
            _, limit = path.limit
            assert error.server_error == pb.TooManyRequests
            assert f" of {path.size} bytes is larger than the {path.role}'s limit" in error.message
            assert f" limit of {limit} bytes: raise {path.key}" in error.message
            assert held(parts.part(path.role).limiter) == {}
            assert parts.part(path.role).lookups.pending_requests == 0
        assert parts.part(path.role).unanswered.total == 0


async def test_a_refused_answer_harms_no_other_namespace() -> None:
    # Given
    limits = {"heap_max_bytes": MEGABYTE}
    async with cluster(TOPICS, broker_limits=limits, proxy_limits=limits) as parts:
        await refusal(parts, "proxy")
        # When
        listing = await parts.client().topics_of_namespace("public/small")
        # Then
        assert list(listing.topics) == TOPICS["public/small"]


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_a_namespace_that_shrinks_below_the_limit_is_answered_again(
    role: str, estimate: str
) -> None:
    # Given
    keys = {"floodgateSizeEstimate": estimate}
    limits = {f"{role}_limits": {"heap_max_bytes": MEGABYTE}}
    async with cluster(TOPICS, both=keys, **limits) as parts:
        await refusal(parts, role)
        gone = [name.encode() for name in NAMES[1:]]
        await parts.broker.store.apply(BIG, TopicChanges((), gone))
        # When
        listing = await parts.client(role).topics_of_namespace("public/big")
        # Then
        assert list(listing.topics) == NAMES[:1]


async def test_a_pattern_that_keeps_too_much_is_no_reason_to_refuse_another() -> None:
    # Given
    async with cluster(TOPICS, proxy_limits={"heap_max_bytes": MEGABYTE}) as parts:
        client = parts.client()
        with pytest.raises(ServerResponseError):
            await client.topics_of_namespace("public/big", pattern="public/big/.*")
        # When
        listing = await client.topics_of_namespace(
            "public/big", pattern="public/big/topic-000007x*"
        )
        # Then
        assert list(listing.topics) == [NAMES[7]]


@pytest.mark.parametrize(
    ("profile", "code", "text"),
    [
        ("pulsar", pb.ServiceNotReady, "Disconnected from server at "),
        ("floodgate", pb.ServiceNotReady, "raise maxMessageSize on broker and proxy"),
    ],
)
async def test_an_answer_above_the_frame_limit_is_an_error_through_the_proxy(
    profile: str, code: int, text: str
) -> None:
    # Given
    async with cluster(TOPICS, profile, broker={"maxMessageSize": "1000000"}) as parts:
        other = parts.client()
        await other.topics_of_namespace("public/small")
        # When
        error = await refusal(parts, "proxy")
        listing = await other.topics_of_namespace("public/small")
        # Then
        assert error.server_error == code
        assert text in error.message
        assert list(listing.topics) == TOPICS["public/small"]
