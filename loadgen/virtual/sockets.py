"""Connects loadgen's own clients over a simulated network, and agrees on the start of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from limiter.clock import deadline
from loadgen.engine.connecting import CONNECT_TIMEOUT_SECONDS, Connector
from loadgen.engine.context import RunTime
from loadgen.virtual.loop import EPOCH_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.engine.connection import LoadConnection
    from loadgen.virtual.links.network import Network

LEAD_SECONDS = 0.5
"""Seconds between the last connection and T0, as between real tasks."""


@dataclass(slots=True)
class VirtualRunTime(RunTime):
    """Time relative to T0, which is agreed at once: there is but one task.

    Attributes:
        on_agreed: Told the clock's reading at the agreed start.
    """

    on_agreed: Callable[[float], object] = lambda t0: None

    def agree(self, t0_epoch_seconds: float) -> None:
        """Begin soon."""
        del t0_epoch_seconds
        self.t0 = self.monotonic() + LEAD_SECONDS
        self.on_agreed(self.t0)


def agreed(_: float) -> float:
    """Return T0 on the wall clock: the same in every run."""
    return EPOCH_MS / 1000


class VirtualConnector(Connector):
    """Connects clients over a simulated network."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network

    def allow(self, connections: int) -> None:
        """Do nothing: there are no open files."""

    async def resolve(self, service_url: str) -> None:
        """Take note of the server, which is here, whatever its URL says."""
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
