"""Broker in this process, without sockets, threads and waiting; and its invariants."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import proto.PulsarApi_pb2 as pb
from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from broker.stores.changes import TopicChanges
from limiter.memory.dual_limiter import LimitType
from limiter.permits.ledger import check_all_balanced
from loadgen.virtual.loop import VirtualClock
from proto.names import NamespaceName
from proxy.service import ProxyService
from server.connection.listener import Listener
from server.imports import NO_IMPORTS
from tests.fuzz.driving.peer import Peer
from tests.fuzz.driving.stand_ins import stand_ins
from tests.fuzz.driving.stepped_loop import SteppedLoop
from tests.fuzz.inputs.credentials import ADMIN, KEYS
from tests.fuzz.rules import BrokenRuleError
from tests.support.peers.frames import frame
from tests.support.peers.raw_peer import connect_command

LIMIT_BYTES = 24_000
"""Heap and direct memory each: two large listings, so a third waits."""
LARGE_NAMESPACE, LARGE_COUNT = "a/b", 24
LOOKED_UP = 16
"""Topics whose bundles cover all bundles."""
_PLACES = {
    "floodgateMessageStore": "memory",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "webServicePort": "8080",
    "brokerServicePort": "6650",
}
_SMALL = {
    "pulsarChannelWriteBufferHighWaterMark": "8192",
    "pulsarChannelWriteBufferLowWaterMark": "4096",
    "pulsarChannelPauseReceivingRequestsIfUnwritable": "true",
    "maxConcurrentLookupRequest": "8",
    "activeConsumerFailoverDelayTimeMillis": "0",
    "forceDeleteNamespaceAllowed": "true",
    "floodgateListingCacheMB": "1",
    "floodgateSnapshotCacheMB": "1",
}


class Doors:
    """Stand-in for listening sockets: keeps the protocol factories by port key."""

    def __init__(self) -> None:
        self.factories: dict[str, Callable[[], Any]] = {}

    async def __call__(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        port_key: str,
        **_: object,
    ) -> Listener:
        self.factories[port_key] = factory
        return Listener(host, port, ())


class BrokerWorld:
    """Broker world.

    Args:
        asks_for_tokens: Require tokens.
        keys: Configuration keys, added to the small limits.

    Attributes:
        token: Administrator's token; empty without authentication.
    """

    def __init__(self, *, asks_for_tokens: bool = False, **keys: str) -> None:
        self.loop = SteppedLoop()
        self.token = ADMIN if asks_for_tokens else b""
        keys |= KEYS if asks_for_tokens else {}
        self.clock = VirtualClock(self.loop)
        self.doors = Doors()
        config = BrokerConfig.from_properties({**_PLACES, **_SMALL, **keys})
        self.service: BrokerService
        self.loop.run(self._open(with_limits(config)), measured=False)
        self._own_all_bundles()

    async def _open(self, config: BrokerConfig) -> None:
        with stand_ins():
            self.service = BrokerService(config, NO_IMPORTS, self.clock, self.doors)
            await self.service.__aenter__()
        prefix = f"persistent://{LARGE_NAMESPACE}/"
        names = [f"{prefix}{'x' * 330}{number:04}" for number in range(LARGE_COUNT)]
        await self.service.store.create_namespace(NamespaceName.parse(LARGE_NAMESPACE))
        await self._create(LARGE_NAMESPACE, names)
        own = [f"persistent://public/default/{one}" for one in ("t", "t2")]
        await self._create("public/default", own)

    async def _create(self, namespace: str, names: list[str]) -> None:
        changes = TopicChanges([name.encode() for name in names])
        await self.service.store.apply(NamespaceName.parse(namespace), changes)

    def _own_all_bundles(self) -> None:
        """Look topics up: in profile pulsar only lookups make this broker their owner."""
        with self.loop.running():
            peer = self.peer()
            peer.say(frame(self.connect()))
            for number in range(LOOKED_UP):
                lookup = pb.CommandLookupTopic(topic=f"public/default/{number}", request_id=number)
                peer.say(frame(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup)))
            peer.breaks()

    def connect(self) -> pb.BaseCommand:
        """Return the CONNECT of an administrator."""
        command = connect_command()
        if self.token:
            command.connect.auth_method_name, command.connect.auth_data = "token", self.token
            command.connect.feature_flags.supports_auth_refresh = True
        return command

    def peer(self, port_key: str = "brokerServicePort") -> Peer:
        return Peer(self.loop, self.doors.factories[port_key]())

    def check(self) -> None:
        """Find resources held after all connections closed.

        Raises:
            BrokenRuleError: Resources are held.
        """
        check_at_rest(self.service)


def with_limits(config: Any) -> Any:
    """Return a configuration with little memory for topic lists."""
    limits = {"heap_max_bytes": LIMIT_BYTES, "direct_max_bytes": LIMIT_BYTES}
    changed = replace(config.topic_list_limits, **limits, heap_queue_size=4, direct_queue_size=4)
    return replace(config, topic_list_limits=changed)


def check_at_rest(service: BrokerService | ProxyService, connected: int = 0) -> None:
    """Find resources held with ``connected`` connections left.

    Raises:
        BrokenRuleError: Resources are held.
    """
    totals, held = service.flow.totals, {}
    for kind in LimitType:
        held[f"{kind.value} bytes"] = service.limiter.acquired_permits(kind)
        held[f"{kind.value} waiting"] = service.limiter.queue_size(kind)
    held |= {
        # Profile pulsar keeps the slots of requests that stay unanswered.
        "lookup places": max(0, service.lookups.pending_requests - service.unanswered.total),
        "pending bytes": service.totals.pending_bytes,
        "unpaid bytes": service.totals.unpaid_bytes,
        "parked frames": totals.parked_frames,
        "parked bytes": totals.parked_bytes,
        "response bytes": totals.response_bytes,
        "watched for progress": max(0, len(service.flow.slow_peers) - connected),
        "connections": len(service.connections) - connected,
        "paused connections": max(0, sum(totals.connections.values()) - connected),
    }
    if found := {name: figure for name, figure in held.items() if figure}:
        raise BrokenRuleError(f"everybody has left, and this is held: {found}")
    check_all_balanced(service.ledgers.values())
