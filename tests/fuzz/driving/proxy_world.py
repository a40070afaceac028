"""Proxy before a broker, in this process and on a loop; and the invariants of both."""

import asyncio
from collections.abc import Callable

from proxy.config import ProxyConfig
from proxy.service import ProxyService
from tests.fuzz.driving.broker_world import BrokerWorld, Doors, check_at_rest, with_limits
from tests.fuzz.driving.link import LinkEnd, linked
from tests.fuzz.driving.peer import Peer
from tests.fuzz.driving.stand_ins import stand_ins

BROKER_PORT, SILENT_PORT = 6650, 6651
"""Connections to the second port stay unanswered."""
_PLACES = {
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "webServicePort": "8081",
    "servicePort": "6660",
    "brokerServiceURL": f"pulsar://127.0.0.1:{BROKER_PORT}",
    "maxConcurrentLookupRequests": "8",
    "pulsarChannelWriteBufferHighWaterMark": "8192",
    "pulsarChannelWriteBufferLowWaterMark": "4096",
}


class ProxyWorld:
    """Proxy world.

    Attributes:
        piece_bytes: Chunk size between proxy and broker; 0: unlimited.
    """

    def __init__(self, profile: str) -> None:
        self.broker = BrokerWorld(floodgateProfile=profile)
        self.loop = self.broker.loop
        self.loop.dial = self.dial
        self.doors = Doors()
        self.piece_bytes = 0
        self._calls: list[LinkEnd] = []
        config = with_limits(ProxyConfig.from_properties({**_PLACES, "floodgateProfile": profile}))
        self.service = ProxyService(config, self.broker.clock, self.doors)
        with stand_ins():
            self.loop.run(self.service.__aenter__(), measured=False)

    async def dial(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect the proxy to the broker.

        Raises:
            OSError: No server listens at the address.
        """
        if port == SILENT_PORT:
            await self.loop.create_future()
        if port != BROKER_PORT or host != "127.0.0.1":
            raise ConnectionRefusedError(111, "Connect call failed")
        calling, accepting = linked(self.loop, port)
        calling.pieces = accepting.pieces = lambda: self.piece_bytes
        accepting.begin(self.broker.doors.factories["brokerServicePort"]())
        protocol = factory()
        calling.begin(protocol)
        self._calls = [*self._calls[-4:], calling]
        return calling, protocol

    def peer(self) -> Peer:
        return Peer(self.loop, self.doors.factories["servicePort"]())

    def says_as_broker(self, data: bytes) -> None:
        """Deliver bytes to the proxy on its latest broker connection."""
        if self._calls:
            self._calls[-1].arrives(data)
        self.loop.settle()

    def check(self) -> None:
        """Find resources held after all connections closed.

        Raises:
            BrokenRuleError: Resources are held.
        """
        check_at_rest(self.service)
        check_at_rest(self.broker.service, connected=len(self.broker.service.connections))
