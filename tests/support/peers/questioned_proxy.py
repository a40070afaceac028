"""A proxy in front of a test-driven broker; at the end no memory may be held."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field

import proto.PulsarApi_pb2 as pb
from limiter.memory.dual_limiter import LimitType
from proto.topic_hash import topics_hash
from proxy.cnx import ProxyConnection
from proxy.listing.flights import Flights
from proxy.service import ProxyService
from tests.support.clocks.manual_clock import ManualClock, stands_until_an_error
from tests.support.clocks.settle import settle
from tests.support.peers.questioned_broker import QuestionedBroker
from tests.support.peers.raw_peer import RawPeer, topics_command
from tests.support.peers.stand_in_broker import topic_names
from tests.support.processes.cluster import held, no_errors_logged, proxy_config, until, with_limits

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
NAMESPACE = "public/list"
SLOW = {
    "floodgateSocketSendBufferBytes": "4096",
    # Non-reading peers may send requests all the same.
    "pulsarChannelPauseReceivingRequestsIfUnwritable": "false",
}
NAMES = topic_names(NAMESPACE, 400, 1_000)
OTHERS = topic_names(NAMESPACE, 401, 1_000)
HASH, OTHER_HASH = topics_hash(NAMES), topics_hash(OTHERS)
NAMES_BYTES = 400 * 1_000
LEAST_BYTES = 1_024
"""Bytes reserved during a request about an answer."""
ONE_LIST = {"heap_max_bytes": 500_000, "direct_max_bytes": 500_000}


@dataclass
class QuestionedProxy:
    """The proxy and its peers. Time stands still."""

    broker: QuestionedBroker
    proxy: ProxyService
    clock: ManualClock
    flights: list[Flights] = field(default_factory=list)
    _peers: list[RawPeer] = field(default_factory=list)

    async def peer(self) -> RawPeer:
        """Return a peer after its handshake that reads only on command."""
        peer = await RawPeer.shaken_hands(self.proxy.service_url)
        self._peers.append(peer)
        self.flights = [self.cnx(peer).parts.flights]
        return peer

    async def asking(self, request_id: int = 1, **fields: object) -> RawPeer:
        """Return a peer whose listing has reached the broker."""
        peer, asked = await self.peer(), len(self.broker.asked)
        await peer.send(topics_command(request_id, NAMESPACE, **fields))
        await until(lambda: len(self.broker.asked) > asked)
        return peer

    async def holding(self, **fields: object) -> RawPeer:
        """Return a peer with an answer in flight: it reads the length and no more."""
        self.broker.go_on.set()
        peer = await self.asking(**fields)
        await peer.read(4)
        self.broker.go_on.clear()
        return peer

    def cnx(self, peer: RawPeer) -> ProxyConnection:
        """Return the proxy's side of a peer."""
        (found,) = [one for one in self.proxy.connections if one.peer == peer.address]
        return found

    async def leave(self, peer: RawPeer) -> None:
        """Close a peer and wait until the proxy notices."""
        address = peer.address
        peer.close()
        await until(lambda: address not in [one.peer for one in self.proxy.connections])

    @property
    def reused(self) -> int:
        """Number of answers shared with another flight's clients."""
        return self.flights[0].live.reused_total

    @property
    def live(self) -> int:
        """The number of remembered answers."""
        return len(self.flights[0].live)

    def acquired(self, limit_type: LimitType = DIRECT) -> int:
        """Return the held bytes of a budget."""
        return self.proxy.limiter.acquired_permits(limit_type)

    def sharers(self, limit_type: LimitType) -> list[object]:
        """Return the holders of a shared part."""
        return [one.owner for one in self.proxy.limiter.semaphore(limit_type).accounts()]

    def held(self) -> dict[str, int]:
        """Return all held resources; empty without connected clients."""
        figures = {
            **held(self.proxy.limiter),
            "lookup places": self.proxy.lookups.pending_requests,
            "flights": sum(map(len, self.flights)),
            "live answers": sum(len(one.live) for one in self.flights),
            "connections": len(self.proxy.connections),
        }
        return {name: figure for name, figure in figures.items() if figure}

    def close_clients(self) -> None:
        for peer in self._peers:
            peer.close()


@asynccontextmanager
async def questioned_proxy(
    broker: QuestionedBroker,
    limits: Mapping[str, float] | None = None,
    *,
    breaks: bool = False,
    **keys: str,
) -> AsyncIterator[QuestionedProxy]:
    """Run a proxy in front of a broker for a block.

    An unbalanced limiter ledger at the end is an error.

    Args:
        broker: Answers requests.
        limits: Fields of the proxy's TopicListLimits.
        breaks: The proxy may log errors of its own.
        keys: The proxy's.
    """
    server = await broker.serve()
    url = f"pulsar://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    given = {"brokerServiceURL": url, **SLOW, **keys}
    clock = ManualClock()
    try:
        with nullcontext() if breaks else no_errors_logged():
            async with ProxyService(with_limits(proxy_config(given), limits), clock) as proxy:
                parts = QuestionedProxy(broker, proxy, clock)
                try:
                    with stands_until_an_error(clock):
                        yield parts
                finally:
                    parts.close_clients()
                    broker.go_on.set()
                await until(lambda: not parts.held(), "the proxy still holds something")
    finally:
        broker.hang_up_now()
        server.close()
        await settle()


async def answer_of(peer: RawPeer) -> pb.CommandGetTopicsOfNamespaceResponse:
    command = await peer.command()
    assert command.type == pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, command
    return command.getTopicsOfNamespaceResponse


async def answer_behind_length(peer: RawPeer) -> pb.CommandGetTopicsOfNamespaceResponse:
    """Read an answer's rest, after its first length field."""
    size = int.from_bytes(await peer.read(4), "big")
    command = pb.BaseCommand.FromString(await peer.read(size))
    return command.getTopicsOfNamespaceResponse


def broker_with(names: list[str]) -> QuestionedBroker:
    return QuestionedBroker({NAMESPACE: names})


def is_one_list(size_bytes: float) -> bool:
    """Return whether the bytes equal the cost of NAMES or OTHERS."""
    return NAMES_BYTES < size_bytes < 1.05 * NAMES_BYTES
