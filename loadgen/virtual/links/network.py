"""The simulated network, with its listening ports and connections."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from limiter.clock import deadline
from loadgen.engine.connecting import CONNECT_TIMEOUT_SECONDS, Connector
from loadgen.virtual.links.client_end import ClientEnd
from loadgen.virtual.links.pipe import LATENCY_SECONDS, KernelBuffers, Pipe
from loadgen.virtual.links.transport import ServerTransport
from loadgen.virtual.loop import VirtualClock
from loadgen.virtual.processor import finish
from server.connection.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.engine.connection import LoadConnection
    from loadgen.virtual.loop import VirtualLoop
    from loadgen.virtual.processor import Processor
    from server.connection.listener import Listen
    from server.connection.web_handshake import ListenerTls

HOST = "127.0.0.1"
_FIRST_CLIENT_PORT = 10_000
_CLIENT_SENDS_BYTES = 1 << 21
"""A server's receive buffer for a client's bytes, so large that requests always fit."""
_Connected = tuple[asyncio.Transport, asyncio.BaseProtocol]


@dataclass(frozen=True, slots=True)
class _Door:
    """A port on which a simulated server accepts connections."""

    processor: Processor
    factory: Callable[[], asyncio.BaseProtocol]
    send_buffer_bytes: int


class Network:
    """All ports and connections of a simulation.

    Attributes:
        clock: Of virtual time.
        doors: Listening processes, by port.
        dialing: The process that opens connections by address: the proxy.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self.doors: dict[int, _Door] = {}
        self.dialing: Processor | None = None
        self.loop = loop
        self.clock = VirtualClock(loop)
        self._client_ports = _FIRST_CLIENT_PORT
        loop.dial = self.dial

    def listening(self, processor: Processor) -> Listen:
        """Return the function by which a simulated server listens on a port."""

        async def listen(
            factory: Callable[[], asyncio.BaseProtocol],
            host: str,
            port: int,
            *,
            port_key: str,
            send_buffer_bytes: int = 0,
            tls: ListenerTls | None = None,
        ) -> Listener:
            open_door = ExitStack()
            if port_key != "webServicePort":  # metrics are not read by HTTP here
                self.doors[port] = _Door(processor, factory, send_buffer_bytes)
                open_door.callback(self.doors.pop, port, None)
            return Listener(HOST, port, (open_door,))

        return listen

    # -- connections --------------------------------------------------------------------------

    def connect(self, client: LoadConnection, port: int, receive_buffer_bytes: int) -> ClientEnd:
        """Connect a client to a port, and call its ``connection_made`` once it is connected.

        Raises:
            OSError: No process listens at the port.
        """
        if port not in self.doors:
            raise ConnectionRefusedError(111, "Connection refused")
        end = ClientEnd(self.loop, client)
        left_at = self._reach(end, port, receive_buffer_bytes)
        self.loop.after(left_at + 2 * LATENCY_SECONDS, client.connection_made, end)
        return end

    async def dial(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> _Connected:
        """Connect the proxy to another simulated server.

        Raises:
            OSError: No process listens at the port.
        """
        own = self.dialing
        if port not in self.doors or own is None or host != HOST:
            raise ConnectionRefusedError(111, "Connect call failed")
        calling, stands = ServerTransport(self.loop, own), self.loop.create_future()
        left_at = self._reach(calling, port)
        self.loop.after(left_at + 2 * LATENCY_SECONDS, own.serve, finish, stands)
        await stands
        protocol = factory()
        calling.begin(protocol)
        return calling, protocol

    def _reach(
        self, caller: ClientEnd | ServerTransport, port: int, receive_buffer_bytes: int = 0
    ) -> float:
        """Begin a connection to a port, which is accepted a moment later if it still listens.

        Returns when the call has left the caller.
        """
        door, loop = self.doors[port], self.loop
        self._client_ports += 1
        accepted = ServerTransport(loop, door.processor)
        accepted.names = (HOST, self._client_ports), (HOST, port)
        own, questions, left_at = None, KernelBuffers(0, _CLIENT_SENDS_BYTES), loop.time()
        if isinstance(caller, ServerTransport):
            caller.names = accepted.names[::-1]
            own, questions = caller.processor, KernelBuffers(0, 0)
            left_at = own.done_at
        answers = KernelBuffers(door.send_buffer_bytes, receive_buffer_bytes)
        caller.incoming = accepted.out = Pipe(loop, answers, door.processor, accepted.writable)
        caller.out = accepted.incoming = Pipe(loop, questions, own, caller.writable)
        caller.incoming.sink, caller.out.sink = caller, accepted

        def accept() -> None:
            if self.doors.get(port) is not door:
                accepted.abort()
                return
            door.processor.charge(door.processor.times.accept)
            accepted.begin(door.factory())

        loop.after(left_at + LATENCY_SECONDS, door.processor.serve, accept)
        return left_at


class VirtualConnector(Connector):
    """Connects clients over the simulated network."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network

    async def resolve(self, service_url: str, connections: int = 1) -> None:
        """Store the host and port of the service URL; nothing has to be looked up."""
        self.service = urlsplit(service_url).netloc

    async def _connect(
        self, client: LoadConnection, receive_buffer_bytes: int, other: str | None
    ) -> None:
        port = urlsplit(f"//{other or self.service}").port or 0
        end = self._network.connect(client, port, receive_buffer_bytes)
        try:
            async with deadline(self._network.clock, CONNECT_TIMEOUT_SECONDS):
                await client.handshake
        except BaseException:
            end.abort()
            raise
