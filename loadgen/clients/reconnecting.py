"""Connects scheduled clients, and connects them again when the server closes a connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loadgen.clients.scheduled_client import ScheduledConnection

if TYPE_CHECKING:
    from loadgen.clients.connect import Connector
    from loadgen.clients.scheduled_client import ScheduledClient


class Reconnector:
    """Makes the connections of scheduled clients; mutable state: those being made again.

    Args:
        connector: Connects to the server.
        receive_buffer_bytes: SO_RCVBUF of the connections; 0 leaves the kernel's own.
        connection: Makes a connection of a client.
    """

    def __init__(
        self,
        connector: Connector,
        receive_buffer_bytes: int,
        connection: type[ScheduledConnection] = ScheduledConnection,
    ) -> None:
        self._connector = connector
        self._receive_buffer_bytes = receive_buffer_bytes
        self._new_connection = connection
        self._connecting: set[asyncio.Task[None]] = set()

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
        """Give up connections that are being made."""
        for connecting in self._connecting:
            connecting.cancel()
