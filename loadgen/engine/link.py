"""A client's link to a server, which connects on demand, also after a lost connection."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from client.discovery.schedule import Unanswered
from loadgen.engine.connection import LoadConnection
from loadgen.engine.rows import RUN_ENDED, Failed

if TYPE_CHECKING:
    from limiter.clock import Clock, TimerHandle
    from loadgen.engine.connection import BrokerAddress
    from loadgen.engine.context import TaskContext

CLOSED = "the connection was closed after the handshake"


class Answer(NamedTuple):
    """The outcome of a request: an answer or a failure.

    Attributes:
        value: The answer; None after a failure.
        failed: The reason of the failure; None with an answer.
    """

    value: Any = None
    failed: Failed | None = None


CUT = Answer(failed=Failed(Unanswered.TIMED_OUT, RUN_ENDED))


class Patience:
    """The timeouts of a client's requests, which share a single timer.

    Mutable state: deadlines in the order of sending, and the timer. Bound: the requests that the
    client has under way.

    Args:
        clock: Arms the timer.
        failed: The result that requests get when they time out.
    """

    def __init__(self, clock: Clock, failed: Failed) -> None:
        self._clock = clock
        self._failed = failed
        self._waiting: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._timer: TimerHandle | None = None

    def add(self, waiting: asyncio.Future[Any], end: float) -> None:
        """Set the time at which a request times out; no effect on a request that has ended."""
        while self._waiting and self._waiting[0][1].done():
            self._waiting.popleft()
        self._waiting.append((end, waiting))
        if self._timer is None:
            self._timer = self._clock.call_at(end, self._due)

    def _due(self) -> None:
        self._timer = None
        now = self._clock.now()
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= now):
            waiting = self._waiting.popleft()[1]
            if not waiting.done():
                waiting.set_result(self._failed)
        if self._waiting:
            self._timer = self._clock.call_at(self._waiting[0][0], self._due)

    def close(self) -> None:
        """Cancel the timeouts of all requests."""
        if self._timer is not None:
            self._timer.cancel()


class Link:
    """A client's link to a server, which connects on demand, also after a lost connection.

    Mutable state: the connection, and the connection attempt under way.

    Args:
        client: The client that owns the link.
        broker: The broker to connect to; None for the server of the service URL.
    """

    def __init__(self, client: Any, broker: BrokerAddress | None) -> None:  # noqa: ANN401
        self._client = client  # A LoadClient; its module imports this module.
        self._broker = broker
        self._making: asyncio.Task[str | None] | None = None
        self._connected_at = 0.0
        self.connection: LoadConnection | None = None
        self.lost = asyncio.Event()

    async def ready(self) -> str | None:
        """Connect unless already connected; return the reason of a failure, or None."""
        if self.connection is not None:
            return None
        if self._making is None:
            self._making = self._client.spawn(self._connect())
        # Shielded, because several requests share the attempt.
        return await asyncio.shield(self._making)

    async def _connect(self) -> str | None:
        client, broker = self._client, self._broker
        context: TaskContext = client.context
        netloc = None if broker is None else broker.netloc
        tunnel, direct = (netloc, None) if broker and broker.through_proxy else (None, netloc)
        pushed = lambda command, payload: client.on_pushed(command, payload)  # noqa: E731
        made = LoadConnection(client.plan, context, self._ended, pushed, tunnel)
        try:
            failure = await context.connector.connect(made, client.group.read.buffer, direct)
        finally:
            self._making = None
        if failure is None and not made.usable:
            failure = CLOSED
        if failure is not None or client.ended:
            made.close()
            return failure or RUN_ENDED
        if client.stalled:
            made.stall(True)
        self.connection, self._connected_at = made, context.clock.now()
        self.lost.clear()
        client.event("connected")
        return None

    def _ended(self, connection: LoadConnection, reason: str) -> None:
        if connection is self.connection:
            self.connection = None
            self.lost.set()
            self._client.connection_lost(self, reason)

    def drop(self) -> None:
        """Close the connection by the client's own decision; the connection counts as lost."""
        if self.connection is not None:
            self.connection.drop("dropped by the client")

    def close(self) -> None:
        """Close the connection for good; the connection does not count as lost."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def patience_end(self) -> float:
        """Return the moment when a request sent now times out, on the run's clock."""
        client = self._client
        seconds: float = client.group.timeout
        end: float = client.context.clock.now() + seconds
        if client.times_out_late:
            since = self._connected_at
            end = since + math.ceil((end - since) / seconds) * seconds
        return end
