"""Answers that are larger than what was reserved, than the limit, than a frame."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.store import TopicChanges
from client.errors import ServerResponseError
from limiter.dual import LimitType
from proto.names import NamespaceName
from tests.support.blocked_store import BlockedStore
from tests.support.cluster import cluster, held, topic_names, until
from tests.support.raw_peer import lookup_command, ping, topics_command
from tests.support.samples import read_samples

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


@pytest.mark.parametrize(
    ("role", "limits", "size", "limit", "key"),
    [
        ("broker", {"heap_max_bytes": MEGABYTE}, HEAP_BYTES, MEGABYTE, HEAP_KEY),
        ("broker", {"direct_max_bytes": MEGABYTE}, COMMAND_BYTES, MEGABYTE, DIRECT_KEY),
        ("proxy", {"heap_max_bytes": MEGABYTE}, COMMAND_BYTES, MEGABYTE, HEAP_KEY),
        ("proxy", {"direct_max_bytes": MEGABYTE}, COMMAND_BYTES, MEGABYTE, DIRECT_KEY),
    ],
)
async def test_an_answer_above_the_limit_is_refused_with_size_limit_and_key_every_time(
    role: str, limits: dict[str, float], size: int, limit: int, key: str
) -> None:
    # Given
    async with cluster(TOPICS, **{f"{role}_limits": limits}) as parts:
        for _ in range(3):
            # When
            error = await refusal(parts, role)
            # Then
            assert error.server_error == pb.TooManyRequests
            assert f" {size} bytes" in error.message
            assert f" {limit} bytes" in error.message
            assert key in error.message
            assert held(parts.part(role).limiter) == {}


async def test_a_refused_answer_harms_no_other_namespace() -> None:
    # Given
    limits = {"heap_max_bytes": MEGABYTE}
    async with cluster(TOPICS, broker_limits=limits, proxy_limits=limits) as parts:
        await refusal(parts, "proxy")
        # When
        listing = await parts.client().topics_of_namespace("public/small")
        # Then
        assert list(listing.topics) == TOPICS["public/small"]


async def test_a_namespace_that_shrinks_below_the_limit_is_answered_again() -> None:
    # Given
    async with cluster(TOPICS, proxy_limits={"heap_max_bytes": MEGABYTE}) as parts:
        await refusal(parts, "proxy")
        gone = [name.encode() for name in NAMES[1:]]
        await parts.broker.store.apply(BIG, TopicChanges((), gone))
        # When
        listing = await parts.client().topics_of_namespace("public/big")
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


async def test_profile_pulsar_refuses_once_and_then_never_answers_and_keeps_its_place() -> None:
    # Given
    limits = {"heap_max_bytes": MEGABYTE}
    async with cluster(TOPICS, "pulsar", broker_limits=limits) as parts:
        error = await refusal(parts, "broker")
        peer = await parts.peer("broker")
        # When
        await peer.send(topics_command(2, "public/big"), ping())
        answer = await peer.command()
        parts.kept_lookup_places = 1
        # Then
        text = f"Requested permits={HEAP_BYTES} is larger than maxPermits={MEGABYTE}"
        assert error.server_error == pb.MetadataError
        assert error.message == f"java.lang.IllegalArgumentException: {text}"
        assert answer.type == pb.BaseCommand.PONG
        await until(lambda: parts.cnx(peer, "broker").unanswered_requests == 1)
        assert parts.broker.lookups.pending_requests == 1


async def test_profile_pulsars_silent_requests_use_up_all_lookup_places_for_ever() -> None:
    # Given
    limits = {"heap_max_bytes": MEGABYTE}
    keys = {"maxConcurrentLookupRequest": "3"}
    async with cluster(TOPICS, "pulsar", broker=keys, broker_limits=limits) as parts:
        await refusal(parts, "broker")
        silent = await parts.peer("broker")
        await silent.send(*(topics_command(number, "public/big") for number in range(3)))
        await until(lambda: parts.cnx(silent, "broker").unanswered_requests == 3)
        parts.kept_lookup_places = 3
        # When
        silent_cnx = parts.cnx(silent, "broker")
        silent.close()
        await until(lambda: silent_cnx.closed)
        peer = await parts.peer("broker")
        await peer.send(lookup_command(9, "persistent://public/default/any"))
        lookup = (await peer.command()).lookupTopicResponse
        # Then
        assert lookup.error == pb.TooManyRequests
        assert lookup.message == "Failed due to too many pending lookup requests"
        assert await pending_lookups(parts.broker.web_service_url) == 3


async def pending_lookups(web_url: str) -> float:
    async with aiohttp.ClientSession() as session, session.get(f"{web_url}/metrics/") as response:
        samples = read_samples(await response.text())
    (found,) = (one for one in samples if one.name == "pulsar_broker_lookup_pending_requests")
    return found.value


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
