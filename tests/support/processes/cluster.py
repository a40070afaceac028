"""A broker and proxy in the test's loop, on loopback sockets, and their final checks.

At the end of the block every client has left and no resource may be held: permits, queue places,
lookup places, pending bytes, connections. An error logged as a part's own also fails the test.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from broker.cnx import ServerCnx
from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from broker.stores.changes import TopicChanges
from client.connection.cnx import ClientCnx
from client.pulsar_client import PulsarClient
from limiter.clock import Clock
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType
from proto.names import NamespaceName
from proxy.cnx import ProxyConnection
from proxy.config import ProxyConfig
from proxy.service import ProxyService
from tests.support.clocks.manual_clock import ManualClock, stands_until_an_error
from tests.support.peers.raw_peer import RECEIVE_BUFFER_BYTES, RawPeer

ConfigT = TypeVar("ConfigT", BrokerConfig, ProxyConfig)
GIVE_UP_SECONDS = 60.0
LOOKS_RARELY = "RARE_LOOKS" in os.environ
RARE_TURNS, RARE_SECONDS = 60, 0.03
# Long waits yield the processor to the awaited tasks.
BUSY_LOOKS, IDLE_SECONDS = 200, 0.001
NOWHERE = "pulsar://127.0.0.1:1"
_LOCAL = {"bindAddress": "127.0.0.1", "advertisedAddress": "127.0.0.1", "webServicePort": "0"}
_IN_MEMORY = {"floodgateMessageStore": "memory"}
_SHORT_DRAIN = {"brokerShutdownTimeoutMs": "5000"}


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Run the loop until a condition holds that lasts until the test continues.

    Drive transient conditions instead: another machine may look too late. ``RARE_LOOKS`` in the
    environment makes every machine late, and a wait for a transient condition fails.

    Raises:
        AssertionError: The condition never holds.
    """
    give_up = time.monotonic() + GIVE_UP_SECONDS
    await _between_looks()
    looks = 0
    while not condition():
        assert time.monotonic() < give_up, what or "the condition never came to hold"
        looks += 1
        await asyncio.sleep(0 if looks < BUSY_LOOKS else IDLE_SECONDS)
        await _between_looks()


async def _between_looks() -> None:
    if LOOKS_RARELY:
        for _ in range(RARE_TURNS):
            await asyncio.sleep(0)
        await asyncio.sleep(RARE_SECONDS)


def held(limiter: AsyncDualMemoryLimiter) -> dict[str, int]:
    """Return a limiter's grants and waiters; empty at rest."""
    figures = {}
    for kind in LimitType:
        figures[f"{kind.value} bytes"] = limiter.acquired_permits(kind)
        figures[f"{kind.value} waiting"] = limiter.queue_size(kind)
    return {name: figure for name, figure in figures.items() if figure}


def flow_figures(part: BrokerService | ProxyService) -> dict[str, int]:
    """Return the flow control counts of connections; all 0 without connections."""
    totals = part.flow.totals
    return {
        **{f"paused for {cause.value}": count for cause, count in totals.connections.items()},
        "unpaid bytes": part.totals.unpaid_bytes,
        "parked frames": totals.parked_frames,
        "parked bytes": totals.parked_bytes,
        "response bytes": totals.response_bytes,
        "unfinished frames": part.flow.limits.unfinished.kept_bytes,
        "watched for progress": len(part.flow.slow_peers),
        "watched for hangups": len(part.flow.process.hangups or ()),
    }


@dataclass
class Cluster:
    """The running parts.

    Attributes:
        broker: The broker.
        proxy: The proxy in front of it.
        kept_lookup_places: Permanently lost in profile pulsar, and expected at the end.
    """

    broker: BrokerService
    proxy: ProxyService
    kept_lookup_places: int = 0
    _clients: list[PulsarClient] = field(default_factory=list)
    _peers: list[RawPeer] = field(default_factory=list)

    def part(self, role: str) -> BrokerService | ProxyService:
        return self.broker if role == "broker" else self.proxy

    def client(self, role: str = "proxy", **options: float) -> PulsarClient:
        """Return a client of a part, closed with the cluster."""
        self._clients.append(PulsarClient(self.part(role).service_url, **options))
        return self._clients[-1]

    async def peer(
        self,
        role: str = "proxy",
        receive_buffer_bytes: int = RECEIVE_BUFFER_BYTES,
        target: str | None = None,
    ) -> RawPeer:
        """Return a raw peer of a part after its handshake, closed with the cluster."""
        url = self.part(role).service_url
        self._peers.append(await RawPeer.shaken_hands(url, receive_buffer_bytes, target))
        return self._peers[-1]

    async def stranger(self, role: str = "proxy") -> RawPeer:
        """Return a silent raw peer of a part, closed with the cluster."""
        self._peers.append(await RawPeer.connect(self.part(role).service_url))
        return self._peers[-1]

    def cnx(self, peer: RawPeer, role: str) -> ServerCnx | ProxyConnection:
        """Return a part's side of a raw peer's connection."""
        found = [one for one in self.part(role).connections if one.peer == peer.address]
        assert len(found) == 1, f"{peer.address} is not one of {self.part(role).connections}"
        return found[0]

    async def close_clients(self) -> None:
        for peer in self._peers:
            peer.close()
        for client in self._clients:
            await client.close()

    def held_by_proxy(self) -> dict[str, object]:
        """Return the proxy's resources held for clients; empty without connections."""
        figures = {
            **held(self.proxy.limiter),
            "lookup places": self.proxy.lookups.pending_requests,
            "pending bytes": self.proxy.totals.pending_bytes,
            "connections": sorted(map(repr, self.proxy.connections)),
            **flow_figures(self.proxy),
        }
        return {name: figure for name, figure in figures.items() if figure}

    def held_by_broker(self) -> dict[str, object]:
        """Return the broker's resources held for clients and the proxy; empty at rest."""
        figures = {
            **held(self.broker.limiter),
            "lookup places": self.broker.lookups.pending_requests - self.kept_lookup_places,
            "pending bytes": self.broker.totals.pending_bytes,
            "connections": sorted(map(repr, self.broker.connections)),
            "active": self.broker.connection_counters.active,
            **flow_figures(self.broker),
        }
        return {name: figure for name, figure in figures.items() if figure}


async def broker_connection(parts: Cluster, peer: RawPeer) -> ClientCnx:
    """Return the proxy's broker connection for a peer."""
    cnx = parts.cnx(peer, "proxy")
    return await cnx.brokers.get(cnx.parts.address)


@asynccontextmanager
async def cluster(
    topics: Mapping[str, Iterable[str]] | None = None,
    profile: str = "floodgate",
    both: Mapping[str, str] | None = None,
    broker: Mapping[str, str] | None = None,
    proxy: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    broker_limits: Mapping[str, float] | None = None,
    proxy_limits: Mapping[str, float] | None = None,
) -> AsyncIterator[Cluster]:
    """Run a broker and a proxy for a block.

    Args:
        topics: Full topic names of each namespace.
        profile: floodgateProfile of both.
        both: Keys of both.
        broker: Keys of the broker.
        proxy: Keys of the proxy.
        clock: Of both. The default stands still, so that slow machines cause no timeouts; tests of
            timed events need a LoopClock.
        broker_limits: Fields of the broker's TopicListLimits, for limits below a megabyte.
        proxy_limits: The same of the proxy.
    """
    clock = clock or ManualClock()
    keys = {**_LOCAL, "floodgateProfile": profile, **(both or {})}
    with no_errors_logged():
        config = with_limits(broker_config({**keys, **(broker or {})}), broker_limits)
        async with BrokerService(config, clock=clock) as first:
            await fill(first, topics or {})
            keys["brokerServiceURL"] = first.service_url
            behind = with_limits(proxy_config({**keys, **(proxy or {})}), proxy_limits)
            async with ProxyService(behind, clock) as second:
                parts = Cluster(first, second)
                try:
                    with stands_until_an_error(clock):
                        yield parts
                finally:
                    await parts.close_clients()
                await _until_empty(parts.held_by_proxy, "proxy")
            await _until_empty(parts.held_by_broker, "broker")


async def _until_empty(holdings: Callable[[], dict[str, object]], role: str) -> None:
    """Wait until the peers' departure is noticed; then everything must be released."""
    try:
        await until(lambda: not holdings())
    except AssertionError:
        raise AssertionError(f"the {role} still holds {holdings()}") from None


def broker_config(keys: Mapping[str, str]) -> BrokerConfig:
    """Return a broker's configuration on free ports of the loopback, with messages in memory."""
    return BrokerConfig.from_properties(
        {**_LOCAL, **_SHORT_DRAIN, **_IN_MEMORY, "brokerServicePort": "0", **keys}
    )


def proxy_config(keys: Mapping[str, str]) -> ProxyConfig:
    """Return a proxy's configuration on free ports of the loopback."""
    return ProxyConfig.from_properties(
        {**_LOCAL, "servicePort": "0", "brokerServiceURL": NOWHERE, **keys}
    )


def with_limits(config: ConfigT, limits: Mapping[str, float] | None) -> ConfigT:
    """Return the configuration with changed memory limits, in bytes and seconds."""
    changed = replace(config.topic_list_limits, **(limits or {}))
    return replace(config, topic_list_limits=changed)


async def fill(broker: BrokerService, topics: Mapping[str, Iterable[str]]) -> None:
    """Put topics into a broker's store."""
    for namespace, names in topics.items():
        changes = TopicChanges([name.encode() for name in names])
        await broker.store.apply(NamespaceName.parse(namespace), changes)


def topic_names(namespace: str, count: int, name_bytes: int = 0) -> list[str]:
    """Return full topic names in Java's order, padded to a length."""
    start = f"persistent://{namespace}/topic-"
    return [f"{start}{index:06d}".ljust(name_bytes, "x") for index in range(count)]


@contextmanager
def no_errors_logged() -> Iterator[None]:
    """Fail if a part logs an error: always Floodgate's fault."""
    handler = _Errors(logging.ERROR)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
    assert not handler.messages, handler.messages


class _Errors(logging.Handler):
    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(logging.Formatter().format(record))
