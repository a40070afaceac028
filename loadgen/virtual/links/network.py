"""The simulated network: who listens where, and the connections between them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.virtual.links.client_end import ClientEnd
from loadgen.virtual.links.kernel import kernel_buffers
from loadgen.virtual.links.pipe import Pipe
from loadgen.virtual.links.transport import ServerTransport
from server.connection.listener import Listener, ListenerTls

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.virtual.links.client_end import Client
    from loadgen.virtual.links.reading import Reader
    from loadgen.virtual.loop import VirtualLoop
    from loadgen.virtual.processor import Processor

HOST = "127.0.0.1"
_FIRST_CLIENT_PORT = 10_000
_Connected = tuple[asyncio.Transport, asyncio.BaseProtocol]


@dataclass(frozen=True, slots=True)
class Link:
    """The way between clients and a server.

    Attributes:
        latency_seconds: One way.
        bytes_per_second: Of each connection and direction; 0: as fast as memory.
    """

    latency_seconds: float = 20e-6
    bytes_per_second: float = 0.0


LOOPBACK = Link()


@dataclass(frozen=True, slots=True)
class _Door:
    """A port on which a process accepts connections."""

    processor: Processor
    factory: Callable[[], asyncio.BaseProtocol]
    send_buffer_bytes: int


class _OpenDoor:
    """A listening port, as the servers close it."""

    def __init__(self, network: Network, port: int) -> None:
        self._network = network
        self._port = port

    def close(self) -> None:
        self._network.doors.pop(self._port, None)


class Network:
    """The ports and connections of one simulation.

    Args:
        link: Between clients and servers; servers among themselves are on one machine.

    Attributes:
        doors: Who listens, by port.
        dialing: The process that opens connections by address: the proxy.
    """

    def __init__(self, loop: VirtualLoop, link: Link = LOOPBACK) -> None:
        self.doors: dict[int, _Door] = {}
        self.dialing: Processor | None = None
        self._loop = loop
        self._link = link
        self._client_ports = _FIRST_CLIENT_PORT
        loop.network = self

    def listening(self, processor: Processor) -> _Listening:
        """Return what a server listens with."""
        return _Listening(self, processor)

    # -- connections --------------------------------------------------------------------------

    def connect(
        self, client: Client, reader: Reader, port: int, receive_buffer_bytes: int
    ) -> ClientEnd | None:
        """Connect a client, who is told when the connection stands; None where nobody listens."""
        door = self.doors.get(port)
        if door is None:
            return None
        loop, link, accepted = self._loop, self._link, self._transport(door.processor, port)
        end = ClientEnd(loop, client, reader)
        latency, speed = link.latency_seconds, link.bytes_per_second
        answers = kernel_buffers(door.send_buffer_bytes, receive_buffer_bytes, latency, speed)
        end.incoming = accepted.out = Pipe(loop, answers, door.processor, accepted.writable)
        end.out = accepted.incoming = Pipe(
            loop, kernel_buffers(0, 1 << 21, latency, speed), None, lambda: end.out.go_on()
        )
        end.incoming.sink, end.out.sink = end, accepted
        now = loop.time()
        loop.after(now + latency, door.processor.serve, self._accept, door, accepted)
        loop.after(now + 2 * latency, client.connected)
        return end

    async def dial(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> _Connected:
        """Connect from a server to another.

        Raises:
            OSError: Nobody listens there.
        """
        door, own = self.doors.get(port), self.dialing
        if door is None or own is None or host != HOST:
            raise ConnectionRefusedError(111, "Connect call failed")
        loop = self._loop
        accepted = self._transport(door.processor, port)
        calling = ServerTransport(loop, own, accepted.names[::-1])
        answers = kernel_buffers(door.send_buffer_bytes, 0)
        questions = kernel_buffers(0, 0)
        calling.incoming = accepted.out = Pipe(loop, answers, door.processor, accepted.writable)
        calling.out = accepted.incoming = Pipe(loop, questions, own, calling.writable)
        calling.incoming.sink, calling.out.sink = calling, accepted
        latency = answers.latency_seconds
        stands = loop.create_future()
        left_at = own.done_at
        loop.after(left_at + latency, door.processor.serve, self._accept, door, accepted)
        loop.after(left_at + 2 * latency, own.serve, _stands, stands)
        await stands
        protocol = factory()
        calling.begin(protocol)
        return calling, protocol

    def _transport(self, processor: Processor, port: int) -> ServerTransport:
        self._client_ports += 1
        names = (HOST, self._client_ports), (HOST, port)
        return ServerTransport(self._loop, processor, names)

    def _accept(self, door: _Door, transport: ServerTransport) -> None:
        door.processor.charge(door.processor.times.accept)
        transport.begin(door.factory())


def _stands(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Listening:
    """Listens on the simulated network for one process: see server.connection.listener.listen."""

    def __init__(self, network: Network, processor: Processor) -> None:
        self._network = network
        self._processor = processor

    async def __call__(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        port_key: str,
        send_buffer_bytes: int = 0,
        tls: ListenerTls | None = None,
    ) -> Listener:
        """Accept connections at a port; nobody asks for metrics by HTTP here."""
        del host, tls
        network = self._network
        if port_key != "webServicePort":
            network.doors[port] = _Door(self._processor, factory, send_buffer_bytes)
        return Listener(HOST, port, (_OpenDoor(network, port),))
