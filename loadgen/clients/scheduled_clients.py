"""The scheduled clients of one task: connects them, and connects them again when they are cut."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loadgen.clients.scheduled_client import ScheduledConnection

if TYPE_CHECKING:
    from loadgen.clients.connect import Connector
    from loadgen.clients.scheduled_client import ScheduledClient


class ScheduledClients:
    """The clients and their connections; mutable state: both.

    Args:
        connector: Connects them.
        receive_buffer_bytes: SO_RCVBUF of their connections; 0 leaves the kernel's own.
        connection: Makes a connection of a client.
    """

    def __init__(
        self,
        connector: Connector,
        receive_buffer_bytes: int,
        connection: type[ScheduledConnection] = ScheduledConnection,
    ) -> None:
        self.all: list[ScheduledClient] = []
        self._connector = connector
        self._receive_buffer_bytes = receive_buffer_bytes
        self._new_connection = connection
        self._connecting: set[asyncio.Task[None]] = set()

    @property
    def connections_lost(self) -> int:
        """Number of connections that ended before the run did."""
        return sum(client.connections_lost for client in self.all)

    def begin(self) -> None:
        """Begin with the schedule of each client."""
        for client in self.all:
            client.begin()

    def reconnect(self, client: ScheduledClient) -> None:
        """Connect a client again, in the background."""
        task = asyncio.get_running_loop().create_task(self.connect(client))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def connect(self, client: ScheduledClient) -> None:
        """Connect a client, or tell it why that failed."""
        connection = self._new_connection(client)
        failure = await self._connector.connect(connection, self._receive_buffer_bytes)
        if failure is None:
            client.connected(connection)
        else:
            client.unreachable(failure)

    def close(self) -> None:
        """Close all connections, and make no more."""
        for connecting in self._connecting:
            connecting.cancel()
        for client in self.all:
            client.close()
