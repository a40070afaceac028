"""One stuck peer: a connection that is not read, and the record of how it fared.

A client looks like that when it hangs in a debugger, swaps, or sits behind a dead link. A peer
that reads nothing answers no PING either.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loadgen.clients.connection import ClientConnection
from loadgen.stuck_peers.summary import PeerEnd, PeerRecord

if TYPE_CHECKING:
    from loadgen.clients.context import ClientContext
    from loadgen.scenario import ClientPlan
    from loadgen.stuck_peers.close_watch import CloseWatch


class StuckPeer(ClientConnection):
    """One connection. Its mutable state is its record."""

    def __init__(
        self, plan: ClientPlan, context: ClientContext[Any], close_watch: CloseWatch
    ) -> None:
        super().__init__(plan, context)
        self.record = PeerRecord(plan.client, plan.namespace.name)
        self._close_watch = close_watch
        self._descriptor: int | None = None

    async def connected(self) -> None:
        """Stop reading, before there is anything to read."""
        if not self.usable or self._transport is None:
            return
        self._transport.pause_reading()
        connection = self._transport.get_extra_info("socket")
        self._descriptor = self._close_watch.watch(connection, self._server_closed)

    def unreachable(self, reason: str) -> None:
        """Record that it could not begin."""
        self.record.end, self.record.reason = PeerEnd.UNREACHABLE, reason

    def begin(self) -> None:
        """Begin to make the server send what is not read."""
        if self.usable and self.record.end is None:
            self.record.asked_seconds = self.context.time.seconds()
            self.ask()

    @abstractmethod
    def ask(self) -> None:
        """Send what makes the server send."""

    def leave(self) -> None:
        """Close the connection; bytes that were not read make that a reset."""
        self.end(PeerEnd.LEFT)
        self._closed = True
        self.close()

    def detail(self) -> dict[str, Any]:
        """Return its record as JSON values, for the report."""
        return asdict(self.record)

    def ended(self, reason: str) -> None:
        """Take note that the server has closed the connection."""
        del reason
        self.end(PeerEnd.CLOSED)

    def end(self, end: PeerEnd) -> None:
        """Note how it ended, unless that is known, and watch it no more."""
        if self._descriptor is not None:
            self._close_watch.forget(self._descriptor)
            self._descriptor = None
        if self.record.end is None:
            self.record.end, self.record.gone_seconds = end, self.context.time.seconds()

    def _server_closed(self) -> None:
        self._descriptor = None
        self._over(str(PeerEnd.CLOSED))
        self.close()
