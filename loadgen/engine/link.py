"""A client's connection to one server: made when it is needed, and again when it was lost."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from loadgen.engine.connection import LoadConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    import proto.PulsarApi_pb2 as pb
    from limiter.clock import Clock, TimerHandle
    from loadgen.engine.connection import BrokerAddress, Failed
    from loadgen.engine.context import TaskContext
    from loadgen.plan.clients import ClientPlan

RUN_ENDED = "not answered when the run ended"
"""Reason of a request that the end of its client cut."""


class Owner(Protocol):
    """The client, as far as its connections need it.

    Attributes:
        stalled: It reads nothing now.
        ended: It makes no connection any more.
    """

    plan: ClientPlan
    context: TaskContext
    stalled: bool
    ended: bool

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something beside what its behaviour awaits."""

    def pushed(self, command: pb.BaseCommand) -> None:
        """Take a command that answers nothing."""

    def connected(self, connection: LoadConnection) -> None:
        """Take note of a connection that stands."""

    def connection_lost(self, link: Link, reason: str) -> None:
        """Take note of one that is gone, before the requests on it fail."""


class Patience:
    """Ends requests that were under way for too long, with one timer for all of a client.

    Mutable state: when each is to end, in the order of sending, and the timer. Bound: as many as
    the client has under way.

    Args:
        clock: Arms the timer.
        failed: The end that they come to.
    """

    def __init__(self, clock: Clock, failed: Failed) -> None:
        self._clock = clock
        self._failed = failed
        self._waiting: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._timer: TimerHandle | None = None

    def add(self, waiting: asyncio.Future[Any], end: float) -> None:
        """Have a request end at a moment of the clock, unless it has ended."""
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
        """End nothing any more."""
        if self._timer is not None:
            self._timer.cancel()


class Link:
    """A client's connection to one server: made when it is needed, and again when it was lost.

    Mutable state: the connection, and who is making it.

    Args:
        client: Whose it is.
        broker: The broker it leads to; None for the service URL.
    """

    def __init__(self, client: Owner, broker: BrokerAddress | None) -> None:
        self._client = client
        self._broker = broker
        self._making: asyncio.Task[str | None] | None = None
        self._connected_at = 0.0
        self.connection: LoadConnection | None = None
        self.on_message: Callable[[pb.CommandMessage, bytes], None] | None = None
        self.lost = asyncio.Event()

    async def ready(self) -> str | None:
        """See that there is a connection; return why there is none."""
        if self.connection is not None:
            return None
        if self._making is None:
            self._making = self._client.spawn(self._connect())
        # Others wait for it too.
        return await asyncio.shield(self._making)

    async def _connect(self) -> str | None:
        client, context = self._client, self._client.context
        tunnel = direct = None
        if self._broker is not None and self._broker.through_proxy:
            tunnel = self._broker.netloc
        elif self._broker is not None:
            direct = self._broker.netloc
        made = LoadConnection(client.plan, context, self._ended, client.pushed, tunnel)
        if self.on_message is not None:
            made.takes_messages(self.on_message)
        try:
            failure = await context.connector.connect(made, made.reader.buffer, direct)
        finally:
            self._making = None
        if failure is None and not made.usable:
            failure = "the connection was closed after the handshake"
        if failure is not None or client.ended:
            made.close()
            return failure or RUN_ENDED
        if client.stalled:
            made.stall()
        self.connection, self._connected_at = made, context.clock.now()
        self.lost.clear()
        client.connected(made)
        return None

    def _ended(self, connection: LoadConnection, reason: str) -> None:
        if connection is self.connection:
            self.connection = None
            self.lost.set()
            self._client.connection_lost(self, reason)

    def drop(self) -> None:
        """Lose the connection of the client's own accord."""
        if self.connection is not None:
            connection = self.connection
            connection._over("dropped by the client")
            connection.close()

    def close(self) -> None:
        """Close the connection for good."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def patience_end(self, seconds: float, *, rounds_up: bool) -> float:
        """Return when a request that is sent now times out, on the clock.

        Args:
            seconds: The operation timeout.
            rounds_up: A request's age is looked at once in a timeout, as Java does.
        """
        end = self._client.context.clock.now() + seconds
        if rounds_up:
            since = self._connected_at
            end = since + math.ceil((end - since) / seconds) * seconds
        return end
