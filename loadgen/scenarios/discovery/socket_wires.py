"""Wires of real sockets: makes the connections of one client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loadgen.scenario import ClientPlan, parse_service_url
from loadgen.scenarios.discovery.family_connection import FamilyConnection

if TYPE_CHECKING:
    from loadgen.clients.connect import Connects
    from loadgen.clients.context import ClientContext
    from loadgen.clients.wires import BrokerAddress, WireEvents
    from loadgen.scenarios.discovery.scenario import FamilyClientPlan


class Connecting:
    """The connections that are being made by the clients of one task.

    Mutable state: their tasks.

    Args:
        connector: Connects them.
        service: Host and port of the service URL; None where there is but one server.
    """

    def __init__(self, connector: Connects, service: tuple[str, int] | None) -> None:
        self.connector = connector
        self.service = service
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, wires: SocketWires, events: WireEvents, broker: BrokerAddress | None) -> None:
        """Make a connection in the background."""
        task = asyncio.get_running_loop().create_task(wires.make(events, broker))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def all_made(self) -> None:
        """Wait for all that were begun."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def close(self) -> None:
        """Give up connections that are being made."""
        for task in self._tasks:
            task.cancel()


class SocketWires:
    """Makes the connections of one client, which all read as its reader does.

    Mutable state: those that were made, while its reader can stall.
    """

    def __init__(
        self,
        plan: FamilyClientPlan,
        context: ClientContext[Any],
        connecting: Connecting,
    ) -> None:
        namespace = plan.namespace
        if plan.group.pattern is not None or plan.group.properties:
            # What is known of the whole is not known of a part.
            namespace = namespace.model_copy(update={"topics": None, "hash": None})
        self._plan = ClientPlan(plan.client, namespace, 0.0, plan.source_address)
        self._reader = plan.group.reader
        self._context = context
        self._connecting = connecting
        self._stalled = False
        self._made: list[FamilyConnection] = []

    def begin(self) -> None:
        """See Wires."""
        reader, clock = self._reader, self._context.clock
        if reader.stall_seconds:
            clock.call_at(clock.now() + reader.stall_at_seconds, self._stall)

    def _stall(self) -> None:
        self._stalled = True
        for connection in self._made:
            connection.stall()
        clock = self._context.clock
        clock.call_at(clock.now() + self._reader.stall_seconds, self._go_on)

    def _go_on(self) -> None:
        self._stalled = False
        for connection in self._made:
            connection.go_on()

    def serves(self, broker: BrokerAddress) -> bool:
        """See Wires."""
        service = self._connecting.service
        return not broker.through_proxy and (service is None or _address(broker) == service)

    def connect(self, events: WireEvents, broker: BrokerAddress | None = None) -> None:
        """See Wires."""
        self._connecting.start(self, events, broker)

    async def make(self, events: WireEvents, broker: BrokerAddress | None) -> None:
        """Make a connection and hand it over, or tell why there is none."""
        tunnel_to, direct_to = None, None
        if broker is not None and broker.through_proxy:
            tunnel_to = broker
        elif broker is not None:
            direct_to = _address(broker)
        reader = self._reader
        connection = FamilyConnection(self._plan, reader, self._context, events, tunnel_to)
        connector = self._connecting.connector
        failure = await connector.connect(connection, reader.receive_buffer_bytes, direct_to)
        if failure is not None:
            connection.close()
            events.unreachable(failure)
            return
        if reader.stall_seconds:
            self._made = [each for each in self._made if each.usable] + [connection]
        if reader.never or self._stalled:
            connection.stall()
        connection.hand_over()


def _address(broker: BrokerAddress) -> tuple[str, int]:
    return parse_service_url(f"pulsar://{urlsplit(broker.url).netloc}")
