"""Many silent clients share one list, and one list per version when topics change."""

import asyncio

import pytest

from broker.stores.changes import TopicChanges
from limiter.memory.dual_limiter import LimitType
from proto.names import NamespaceName
from proto.topic_hash import topics_hash
from proxy.listing.flights import Flights
from tests.support.peers.questioned_proxy import answer_behind_length, answer_of
from tests.support.peers.raw_peer import RawPeer, topics_command
from tests.support.processes.cluster import Cluster, cluster, topic_names, until

DIRECT = LimitType.DIRECT_MEMORY
NAMESPACE = "public/default"
NAMES = topic_names(NAMESPACE, 4_000, 92)
LIMIT_BYTES = 1_048_576
ONE_MIB = {"heap_max_bytes": LIMIT_BYTES, "direct_max_bytes": LIMIT_BYTES}
LITTLE_BUFFER = {"floodgateSocketSendBufferBytes": "4096"}
SILENT = 200
PIPELINED = 5
HEALTHY = 10
LISTS_EACH = 5
LEAST_BYTES = 1_024
LENGTH_FIELD_BYTES = 4


def flights_of(parts: Cluster) -> Flights:
    return next(iter(parts.proxy.connections)).parts.flights


async def list_in_turn(parts: Cluster) -> list[str]:
    """List a few times in sequence and return the hashes of the answers."""
    peer = await parts.peer(receive_buffer_bytes=200_000)
    hashes = []
    for number in range(LISTS_EACH):
        await peer.send(topics_command(number, NAMESPACE))
        hashes.append(topics_hash(list((await answer_of(peer)).topics)))
    return hashes


@pytest.mark.parametrize("silent_at_once", [True, False])
async def test_two_hundred_silent_clients_share_a_copy_of_a_listing(silent_at_once: bool) -> None:
    # Time stands still, so no timeout frees memory
    options = {"proxy": LITTLE_BUFFER, "proxy_limits": ONE_MIB}
    async with cluster({NAMESPACE: NAMES}, **options) as parts:
        for _ in range(SILENT):
            peer = await parts.peer()
            await peer.send(*[topics_command(number, NAMESPACE) for number in range(PIPELINED)])
            if not silent_at_once:
                await peer.read(4)
        await until(lambda: parts.proxy.lookups.pending_requests == 0)
        held_by_silent = parts.proxy.limiter.acquired_permits(DIRECT)
        answers = await asyncio.gather(*[list_in_turn(parts) for _ in range(HEALTHY)])
        assert answers == [[topics_hash(NAMES)] * LISTS_EACH] * HEALTHY
        direct = parts.proxy.limiter.statistics().direct
        assert LIMIT_BYTES // 3 < held_by_silent < LIMIT_BYTES // 2.5
        assert direct.high_water_permits <= held_by_silent + LEAST_BYTES
        assert parts.proxy.limiter.queue_size(DIRECT) == 0
        assert flights_of(parts).live.reused_total > 0


async def test_slow_readers_hold_a_single_copy_of_each_version_while_topics_change() -> None:
    # A hundred readers, ten of each version, that stop inside their answer
    versions, readers_each = 10, 10
    small = topic_names(NAMESPACE, 1_000, 92)
    readers: list[tuple[RawPeer, str]] = []
    async with cluster({NAMESPACE: small}, proxy=LITTLE_BUFFER) as parts:
        version, sizes = small, 0
        for number in range(versions):
            for _ in range(readers_each):
                peer = await parts.peer()
                await peer.send(topics_command(1, NAMESPACE))
                size = int.from_bytes(await peer.read(4), "big")
                readers.append((peer, topics_hash(version)))
            sizes += size
            version = [*version, f"persistent://{NAMESPACE}/topic-new-{number}"]
            added = TopicChanges([version[-1].encode()])
            await parts.broker.store.apply(NamespaceName.parse(NAMESPACE), added)
        charged = parts.proxy.limiter.acquired_permits(DIRECT)
        live = flights_of(parts).live
        held = (len(live), live.reused_total)
        answers = [await answer_behind_length(peer) for peer, _ in readers]
        assert charged == sizes - versions * LENGTH_FIELD_BYTES
        assert held == (1, versions * (readers_each - 1))
        for (_, expected), answer in zip(readers, answers, strict=True):
            assert (topics_hash(list(answer.topics)), answer.topics_hash) == (expected, expected)
        await until(lambda: parts.proxy.limiter.acquired_permits(DIRECT) == 0)
        assert len(live) == 0
