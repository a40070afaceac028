"""A vanished client's resources are released in the turn that notices the loss.

The loop does not run between ``connection_lost`` and the check: no task may be needed.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from limiter.memory.dual_limiter import LimitType, MemoryPermit
from tests.support.peers.raw_peer import RawPeer, topics_command
from tests.support.processes.cluster import Cluster, cluster, held, topic_names, until
from tests.support.stores.blocked_store import BlockedStore

PROFILES = ["pulsar", "floodgate"]
ROLES = ["broker", "proxy"]
BIG = {"public/big": topic_names("public/big", 5_000, 800)}
# A namespace without topics would be answered at once.
SMALL = {f"public/none-{n}": topic_names(f"public/none-{n}", 1) for n in range(20)}
SMALL_SEND_BUFFER = {"floodgateSocketSendBufferBytes": "4096"}
LIMIT_BYTES = 100 * 1024 * 1024


@dataclass
class Loss:
    """Resources held for a peer just before and after its loss, in one turn."""

    before: dict[str, int]
    after: dict[str, int]


def lose(parts: Cluster, role: str, peer: RawPeer) -> Loss:
    """Report a peer's loss to a part, as its event loop would."""
    cnx = parts.cnx(peer, role)
    before = holdings(parts, role)
    transport = cnx.sender.transport
    cnx.connection_lost(ConnectionResetError())
    after = holdings(parts, role)
    # The loop's own report of the loss comes later and must be a no-op.
    cnx.connection_lost = lambda _: None
    transport.abort()
    return Loss(before, after)


def holdings(parts: Cluster, role: str) -> dict[str, int]:
    part = parts.part(role)
    figures = {**held(part.limiter), "lookup places": part.lookups.pending_requests}
    figures["pending bytes"] = part.totals.pending_bytes
    return {name: figure for name, figure in figures.items() if figure}


@asynccontextmanager
async def taken(parts: Cluster, role: str, kind: LimitType) -> AsyncIterator[None]:
    """Hold a whole budget on behalf of another client."""
    limiter = parts.part(role).limiter
    all_of_it: MemoryPermit = await limiter.acquire(kind, limiter.available_permits(kind))
    try:
        yield
    finally:
        limiter.release(all_of_it)


def queued(parts: Cluster, role: str, kind: LimitType) -> Callable[[], bool]:
    return lambda: parts.part(role).limiter.queue_size(kind) == 1


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", list(LimitType))
async def test_a_waiter_of_a_lost_client_is_removed_immediately(role, profile, kind) -> None:
    async with cluster(BIG, profile) as parts, taken(parts, role, kind):
        peer = await parts.peer(role)
        await peer.send(topics_command(1, "public/big"))
        await until(queued(parts, role, kind))
        loss = lose(parts, role, peer)
        assert loss.before[f"{kind.value} waiting"] == 1
        assert loss.after == {f"{kind.value} bytes": LIMIT_BYTES}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_client_lost_during_its_listing_releases_all_permits_immediately(
    role: str, profile: str
) -> None:
    async with cluster(BIG, profile) as parts:
        store = BlockedStore(parts.broker)
        peer = await parts.peer(role)
        await peer.send(topics_command(1, "public/big"))
        await until(lambda: store.asked)
        loss = lose(parts, role, peer)
        assert loss.before["heap bytes"] > 0
        assert loss.after == {}
        store.go_on.set()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_client_lost_with_its_answer_half_written_releases_all_permits(
    role: str, profile: str
) -> None:
    async with cluster(BIG, profile, **{role: SMALL_SEND_BUFFER}) as parts:
        peer = await parts.peer(role)
        await peer.send(topics_command(1, "public/big"))
        head = await peer.read(1_000)
        await until(lambda: parts.part(role).limiter.acquired_permits(LimitType.HEAP_MEMORY) == 0)
        loss = lose(parts, role, peer)
        assert len(head) == 1_000
        assert loss.before["direct bytes"] > 4_000_000
        assert loss.before["pending bytes"] > 4_000_000
        assert loss.after == {}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_waiter_behind_a_lost_client_gets_permits_in_the_same_turn(role, profile) -> None:
    keys = {role: {**SMALL_SEND_BUFFER, "floodgateResponseBuffers": "private"}}
    limits = {f"{role}_limits": {"direct_max_bytes": 4_500_000}}
    async with cluster(BIG, profile, **keys, **limits) as parts:
        stuck, patient = await parts.peer(role), await parts.peer(role)
        await stuck.send(topics_command(1, "public/big"))
        await stuck.read(1)
        await patient.send(topics_command(2, "public/big"))
        await until(queued(parts, role, LimitType.DIRECT_MEMORY))
        loss = lose(parts, role, stuck)
        assert loss.before["direct waiting"] == 1
        assert "direct waiting" not in loss.after
        assert (await patient.command()).getTopicsOfNamespaceResponse.request_id == 2


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("profile", PROFILES)
async def test_lookup_permits_of_a_lost_client_are_all_released(role: str, profile: str) -> None:
    unbounded = {"floodgateMaxInFlightResponseBytesPerConnection": "0"}
    async with cluster({**BIG, **SMALL}, profile, both=unbounded) as parts:
        store = BlockedStore(parts.broker)
        lost, other = await parts.peer(role), await parts.peer(role)
        await lost.send(*(topics_command(n, f"public/none-{n}") for n in range(20)))
        await other.send(topics_command(7, "public/big"))
        await until(lambda: len(store.asked) == 21)
        loss = lose(parts, role, lost)
        # Profile pulsar's proxy frees a place long before the answer.
        counts_places = role == "broker" or profile == "floodgate"
        assert loss.before.get("lookup places", 0) == (21 if counts_places else 0)
        assert loss.after.get("lookup places", 0) == (1 if counts_places else 0)
        assert loss.after["heap bytes"] > 0
        store.go_on.set()
        assert (await other.command()).getTopicsOfNamespaceResponse.request_id == 7
