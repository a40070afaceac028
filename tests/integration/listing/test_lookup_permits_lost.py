"""Profile pulsar's silence: lists above a limit, and each one's permanent cost.

As recorded of a broker 4.2.4 with a heap limit of 1 MiB, and verified again: the first listing of a
namespace and mode is MetadataError; later listings get no answer, even with a pattern, with a hash,
or after the namespace has shrunk, and each keeps its lookup permit. Other modes have their own
estimates. Direct memory is MetadataError every time and keeps nothing.
"""

from __future__ import annotations

import asyncio
import logging

import aiohttp
import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import TopicChanges
from proto.names import NamespaceName
from tests.support.peers.frames import ping
from tests.support.peers.raw_peer import RawPeer, lookup_command, partitions_command, topics_command
from tests.support.processes.cluster import Cluster, cluster, held, topic_names, until
from tests.support.processes.samples import read_samples

BIG = NamespaceName.parse("public/big")
NAMES = topic_names("public/big", 2_000, 800)
TOPICS = {"public/big": NAMES, "public/small": topic_names("public/small", 10)}
HEAP_BYTES = 2_000 * (800 + 32)
MEGABYTE = 1024 * 1024
HEAP_LIMIT = {"heap_max_bytes": MEGABYTE}
DIRECT_LIMIT = {"direct_max_bytes": MEGABYTE}
FIVE = {"maxConcurrentLookupRequest": "5"}
MODE = pb.CommandGetTopicsOfNamespace
TEXT = (
    f"java.lang.IllegalArgumentException: Requested permits={HEAP_BYTES} is larger than "
    f"maxPermits={MEGABYTE}"
)
TOO_MANY = "Failed due to too many pending lookup requests"


async def told(
    parts: Cluster, peer: RawPeer, role: str = "broker", **fields: object
) -> pb.CommandError | None:
    """List the big namespace; return the error, or None for no answer."""
    before = parts.part(role).unanswered.total
    await peer.send(topics_command(1, "public/big", **fields))
    answer = asyncio.create_task(peer.command())
    await until(lambda: answer.done() or parts.part(role).unanswered.total > before)
    if not answer.done():
        # A late answer would precede the PONG.
        await peer.send(ping())
        assert (await answer).type == pb.BaseCommand.PONG
        return None
    assert answer.result().type == pb.BaseCommand.ERROR
    return answer.result().error


async def sample(parts: Cluster, role: str, name: str) -> float:
    url = f"{parts.part(role).web_service_url}/metrics/"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        samples = read_samples(await response.text())
    (found,) = (one for one in samples if one.name == name)
    return found.value


async def ask_six_times(parts: Cluster) -> None:
    """List the big namespace six times, five after the first refusal, and leave."""
    peer = await parts.peer("broker")
    for _ in range(6):
        await told(parts, peer)
    cnx = parts.cnx(peer, "broker")
    peer.close()
    await until(lambda: cnx.closed)


async def test_the_sixth_lookup_is_refused_when_five_silent_requests_keep_their_permits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster(TOPICS, "pulsar", broker=FIVE, broker_limits=HEAP_LIMIT) as parts:
        await ask_six_times(parts)
        parts.kept_lookup_places = 5
        peer = await parts.peer("broker")
        # An unrelated topic and namespace
        await peer.send(
            lookup_command(6, "persistent://public/default/any"),
            partitions_command(7, "persistent://public/default/any"),
            topics_command(8, "public/small"),
        )
        lookup, partitions, listing = [await peer.command() for _ in range(3)]
        refusals = (
            lookup.lookupTopicResponse,
            partitions.partitionMetadataResponse,
            listing.error,
        )
        assert [(one.error, one.message) for one in refusals] == [
            (pb.TooManyRequests, TOO_MANY)
        ] * 3
        assert await sample(parts, "broker", "pulsar_broker_lookup_pending_requests") == 5
        assert await sample(parts, "broker", "floodgate_unanswered_requests_total") == 5
        assert held(parts.broker.limiter) == {}
        lines = [one for one in caplog.records if "never answered and keeps" in one.getMessage()]
        assert [one.levelno for one in lines] == [logging.WARNING] * 5


async def test_the_sixth_lookup_is_answered_when_every_refusal_is_answered() -> None:
    async with cluster(TOPICS, "floodgate", broker=FIVE, broker_limits=HEAP_LIMIT) as parts:
        await ask_six_times(parts)
        peer = await parts.peer("broker")
        await peer.send(
            lookup_command(6, "persistent://public/default/any"),
            partitions_command(7, "persistent://public/default/any"),
            topics_command(8, "public/small"),
        )
        answers = [await peer.command() for _ in range(3)]
        assert {answer.type for answer in answers} == {
            pb.BaseCommand.LOOKUP_RESPONSE,
            pb.BaseCommand.PARTITIONED_METADATA_RESPONSE,
            pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        }
        assert await sample(parts, "broker", "pulsar_broker_lookup_pending_requests") == 0
        assert await sample(parts, "broker", "floodgate_unanswered_requests_total") == 0


@pytest.mark.parametrize("estimate", ["last", "exact"])
@pytest.mark.parametrize(
    "first",
    [{}, {"topics_pattern": "public/big/none"}, {"topics_hash": "deadbeef"}, {"mode": MODE.ALL}],
    ids=str,
)
async def test_a_listing_above_the_limit_is_refused_once_then_unanswered(first, estimate) -> None:
    keys = {"floodgateSizeEstimate": estimate}
    async with cluster(TOPICS, "pulsar", broker=keys, broker_limits=HEAP_LIMIT) as parts:
        peer = await parts.peer("broker")
        error = await told(parts, peer, **first)
        mode = {"mode": first["mode"]} if "mode" in first else {}
        later = [
            await told(parts, peer, **mode),
            await told(parts, peer, **mode, topics_pattern="public/big/none"),
            await told(parts, peer, **mode, topics_hash="deadbeef"),
        ]
        parts.kept_lookup_places = 3
        assert (error.error, error.message) == (pb.MetadataError, TEXT)
        assert later == [None] * 3
        assert parts.broker.lookups.pending_requests == 3
        assert held(parts.broker.limiter) == {}


async def test_each_listing_mode_has_its_own_size_estimate() -> None:
    async with cluster(TOPICS, "pulsar", broker_limits=HEAP_LIMIT) as parts:
        peer = await parts.peer("broker")
        await told(parts, peer)
        whole = await told(parts, peer, mode=MODE.ALL)
        await peer.send(topics_command(2, "public/big", mode=MODE.NON_PERSISTENT))
        other = await peer.command()
        assert whole.message == TEXT
        assert list(other.getTopicsOfNamespaceResponse.topics) == []
        assert await told(parts, peer, mode=MODE.ALL) is None
        parts.kept_lookup_places = 1


async def test_a_refused_namespace_stays_unanswered_after_it_shrinks() -> None:
    async with cluster(TOPICS, "pulsar", broker_limits=HEAP_LIMIT) as parts:
        peer = await parts.peer("broker")
        await told(parts, peer)
        gone = [name.encode() for name in NAMES[1:]]
        await parts.broker.store.apply(BIG, TopicChanges((), gone))
        assert await told(parts, peer) is None
        parts.kept_lookup_places = 1


async def test_of_simultaneous_listings_above_the_limit_only_one_is_answered() -> None:
    async with cluster(TOPICS, "pulsar", broker_limits=HEAP_LIMIT) as parts:
        peers = [await parts.peer("broker") for _ in range(5)]
        for peer in peers:
            await peer.send(topics_command(1, "public/big"))
        answers = [asyncio.create_task(peer.command()) for peer in peers]
        (answered,), silent = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        await until(lambda: parts.broker.unanswered.total == 4)
        parts.kept_lookup_places = 4
        assert answered.result().error.message == TEXT
        for peer in peers:
            await peer.send(ping())
        assert {(await task).type for task in silent} == {pb.BaseCommand.PONG}


async def test_a_response_above_the_direct_limit_is_always_refused_and_keeps_no_permits() -> None:
    async with cluster(TOPICS, "pulsar", broker_limits=DIRECT_LIMIT) as parts:
        peer = await parts.peer("broker")
        errors = [await told(parts, peer) for _ in range(4)]
        assert {error.error for error in errors} == {pb.MetadataError}
        assert all("is larger than maxPermits=1048576" in error.message for error in errors)
        assert parts.broker.lookups.pending_requests == 0
        assert held(parts.broker.limiter) == {}


# -- the proxy -----------------------------------------------------------------------------------


async def test_the_proxy_answers_only_its_first_refusal_and_keeps_no_permits(caplog) -> None:
    places = {"maxConcurrentLookupRequests": "2"}
    async with cluster(TOPICS, "pulsar", proxy=places, proxy_limits=HEAP_LIMIT) as parts:
        peer = await parts.peer()
        error, *later = [await told(parts, peer, "proxy") for _ in range(4)]
        assert (error.error, error.message) == (pb.ServiceNotReady, TEXT)
        assert later == [None] * 3
        assert await sample(parts, "proxy", "floodgate_unanswered_requests_total") == 3
        assert await sample(parts, "proxy", "floodgate_proxy_lookup_pending_requests") == 0
        assert held(parts.proxy.limiter) == {}
        lines = [one.getMessage() for one in caplog.records if "never answered" in one.getMessage()]
        assert len(lines) == 3
        assert "keeps" not in lines[0]
        await peer.send(topics_command(9, "public/small"))
        assert (await peer.command()).getTopicsOfNamespaceResponse.request_id == 9


async def test_the_proxy_never_answers_a_listing_above_its_direct_limit() -> None:
    async with cluster(TOPICS, "pulsar", proxy_limits=DIRECT_LIMIT) as parts:
        peer = await parts.peer()
        answers = [await told(parts, peer, "proxy") for _ in range(3)]
        assert answers == [None] * 3
        assert parts.broker.lookups.pending_requests == 0
        assert held(parts.proxy.limiter) == {}
