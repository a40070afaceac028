"""A pipe from a client to the broker it named in CONNECT (proxy_to_broker_url).

The proxy finishes both handshakes and then copies bytes, undecoded, both ways. Each side is
paused while the other does not take more; either side's end is the other's.

Source: upstream DirectProxyHandler.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from limiter.clock import Clock, deadline
from limiter.read_gate import PauseCause
from proto.errors import RemoteProtocolError
from proto.transport import Connection
from proxy.brokers import PROXY_VERSION

if TYPE_CHECKING:
    from limiter.outbound import OutboundTotals
    from proto.frames import Frame
    from proxy.brokers import Address

logger = logging.getLogger(__name__)


class PipeLeg(Connection):
    """One side of a pipe: what it cannot write pauses the other side's reading."""

    other: Connection | None = None

    def writability_changed(self, *, writable: bool) -> None:
        """Pause or resume the other side."""
        if self.other is not None and writable:
            self.other.gate.open_for(PauseCause.PEER_LEG_FULL)
        elif self.other is not None:
            self.other.gate.close_for(PauseCause.PEER_LEG_FULL)

    def pipe_to(self, other: Connection) -> None:
        """From now on pass every byte on to ``other``."""
        self.receive_raw(lambda data: other.enqueue([data], len(data)))


class BrokerLeg(PipeLeg):
    """The proxy's side of the connection to the broker.

    Args:
        connect: The client's CONNECT.
        totals: Where the process adds up its pending bytes.
    """

    def __init__(self, connect: pb.CommandConnect, totals: OutboundTotals) -> None:
        super().__init__(totals=totals)
        self._connect = connect
        self.greeting: asyncio.Future[pb.BaseCommand] = asyncio.get_running_loop().create_future()

    def connected(self) -> None:
        """Send CONNECT as the proxy, for the client."""
        connect = pb.CommandConnect(
            client_version=self._connect.client_version,
            protocol_version=self._connect.protocol_version,
            auth_method_name="none",
            proxy_version=PROXY_VERSION,
        )
        if self._connect.HasField("feature_flags"):
            connect.feature_flags.CopyFrom(self._connect.feature_flags)
        self.send(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))

    def frame_received(self, frame: Frame) -> None:
        """Take the broker's answer to CONNECT, then wait until the pipe is open."""
        command = frame.command()
        if command.type not in (pb.BaseCommand.CONNECTED, pb.BaseCommand.ERROR):
            name = pb.BaseCommand.Type.Name(command.type)
            raise RemoteProtocolError(f"{name} came in answer to CONNECT")
        self.gate.close_for(PauseCause.CONNECTING_TO_BROKER)
        if not self.greeting.done():
            self.greeting.set_result(command)

    def lost(self, error: Exception | None) -> None:
        """The broker's end is the client's."""
        if not self.greeting.done():
            self.greeting.set_exception(ConnectionError(f"{self.peer} closed the connection"))
            self.greeting.exception()
        if self.other is not None:
            self.other.close()


async def open_broker_leg(
    address: Address,
    connect: pb.CommandConnect,
    totals: OutboundTotals,
    clock: Clock,
    timeout_seconds: float,
) -> tuple[BrokerLeg, pb.BaseCommand]:
    """Connect to a broker for a client; return the leg and the broker's CONNECTED or ERROR.

    Raises:
        OSError: It cannot be reached, or closed the connection (ConnectionError).
        TimeoutError: It did not answer in ``timeout_seconds``.
    """
    loop = asyncio.get_running_loop()
    host, port = address
    async with deadline(clock, timeout_seconds):
        _, leg = await loop.create_connection(lambda: BrokerLeg(connect, totals), host, port)
        try:
            return leg, await asyncio.shield(leg.greeting)
        except BaseException:
            leg.abort()
            raise
