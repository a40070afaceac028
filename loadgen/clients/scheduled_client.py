"""One client that asks on a schedule over one lasting connection.

Each request is sent when it is due, whatever became of the ones before: answers that are still
awaited share the connection, as those of a real client do. A connection that the server closes is
made again at once, and counted; requests that fall due meanwhile are sent when it stands again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from loadgen.clients.connection import ClientConnection
from loadgen.clients.pacing import ReadBudget
from loadgen.clients.records import Outcome, RequestRecord
from loadgen.clients.schedule import ON_TIME_SECONDS
from proto.commands import NO_REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limiter.clock import TimerHandle
    from loadgen.clients.answer_stream import Listing
    from loadgen.clients.answers import AnswerBody
    from loadgen.clients.connect import Connects
    from loadgen.clients.context import ClientContext
    from loadgen.scenario import ClientPlan


class ScheduledConnection(ClientConnection):
    """One of a scheduled client's connections; it passes on answers and refusals."""

    def __init__(self, client: ScheduledClient) -> None:
        super().__init__(client.plan, client.context)
        self.client = client
        rate = client.context.scenario.read_rate_bytes_per_second
        if rate:
            self._budget = ReadBudget(rate, client.context.time.monotonic())

    async def open(self) -> str | None:
        """Do what comes before the first request; return why that failed, or None."""
        return None

    def listing_received(self, listing: Listing) -> None:
        """Pass on a listing, unless its request has timed out."""
        if self.client.awaits(listing.request_id):
            answer = self.client.context.checker.submit(listing.body)
            self.client.answered(listing.request_id, listing.body.size_bytes, answer)

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Pass on a refusal."""
        self.client.refused(request_id, reason)

    def bytes_received(self, nbytes: int) -> None:
        """Count bytes that were read."""
        self.client.context.counters.bytes += nbytes

    def ended(self, reason: str) -> None:
        """Tell the client that it has no connection."""
        self.client.disconnected(self, reason)


class ScheduledClient:
    """A client. Its mutable state is its connection and the requests that have not ended.

    Bound: as many open requests as fall due within the scenario's timeout.

    Args:
        due: When its requests are due, in seconds after T0.
        frame: Returns the bytes of the request with an id.
        reconnect: Called when the client needs a connection; it ends in :meth:`connected` or
            :meth:`unreachable`.
        operation: What its requests ask for, as their rows call it.
    """

    def __init__(
        self,
        plan: ClientPlan,
        context: ClientContext[Any],
        due: Iterator[float],
        frame: Callable[[int], bytes],
        reconnect: Callable[[ScheduledClient], None],
        operation: str = "list",
    ) -> None:
        self.plan = plan
        self.context = context
        self.records: list[RequestRecord] = []
        self.connections_lost = 0
        self.start_error_seconds = 0.0
        self._frame = frame
        self._reconnect = reconnect
        self._operation = operation
        self._connection: ScheduledConnection | None = None
        self._connecting = False
        self._due = due
        self._next_due: float | None = next(due, None)
        self._open: dict[int, RequestRecord] = {}  # by request id; those not sent yet included
        self._timers: dict[int, TimerHandle] = {}
        self._finished = False

    # Called by the task.

    def begin(self) -> None:
        """Begin with the schedule; the first request is due at the plan's intended start."""
        self._arm()

    def connected(self, connection: ScheduledConnection) -> None:
        """Use a connection, and send the requests that have waited for it."""
        self._connecting = False
        if not connection.usable:
            self.unreachable("the connection was closed after the handshake")
            return
        self._connection = connection
        for request_id, record in self._open.items():
            if record.started_seconds is None:
                self._send(connection, request_id, record)

    def unreachable(self, reason: str) -> None:
        """Give up requests that wait for a connection; the next one that is due tries again."""
        self._connecting = False
        for request_id in [number for number, each in self._open.items() if not each.started]:
            self._settle(request_id, Outcome.UNREACHABLE, reason)

    def stop(self) -> None:
        """Ask for nothing more; requests under way may end."""
        self._next_due = None
        self._finish_if_done()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # Called by the connection.

    def awaits(self, request_id: int) -> bool:
        """Return whether a request is open."""
        return request_id in self._open

    def answered(self, request_id: int, size_bytes: int, answer: AnswerBody | None) -> None:
        """Settle an open request; ``answer`` is None where nothing needs verification."""
        record = self._open[request_id]
        record.bytes, record.answer = size_bytes, answer
        self._settle(request_id, Outcome.ANSWERED)

    def refused(self, request_id: int, reason: str) -> None:
        """Take a refusal; one that names no request ends all that were sent."""
        sent = [number for number, record in self._open.items() if record.started]
        for number in sent if request_id == NO_REQUEST else [request_id]:
            if number in self._open:
                self._settle(number, Outcome.REFUSED, reason)

    def disconnected(self, connection: ScheduledConnection, reason: str) -> None:
        """End requests that were sent over a lost connection, and ask for another connection."""
        if connection is not self._connection:
            return
        self._connection = None
        self.connections_lost += 1
        for request_id in [number for number, each in self._open.items() if each.started]:
            self._settle(request_id, Outcome.DISCONNECTED, reason)
        self._connect()

    # The schedule.

    def _arm(self) -> None:
        if self._next_due is None:
            self._finish_if_done()
            return
        clock = self.context.clock
        wait_seconds = self._next_due - self.context.time.seconds()
        clock.call_at(clock.now() + max(0.0, wait_seconds), self._ask)

    def _ask(self) -> None:
        due = self._next_due
        if due is None:  # stopped meanwhile
            return
        late_seconds = self.context.time.seconds() - due
        # The loop's clock has steps of a millisecond, the run's has not.
        if late_seconds < -ON_TIME_SECONDS:
            self._arm()
            return
        self.context.lags.append(max(0.0, late_seconds))
        self._next_due = next(self._due, None)
        self._request(due, late_seconds)
        self._arm()

    def _request(self, due: float, late_seconds: float) -> None:
        record = RequestRecord(
            self.plan.client, self.plan.namespace.name, due, operation=self._operation
        )
        self.records.append(record)
        request_id = len(self.records)
        self._open[request_id] = record
        clock, patience = self.context.clock, self.context.scenario.timeout_seconds
        self._timers[request_id] = clock.call_at(
            clock.now() + patience - late_seconds, self._time_out, request_id
        )
        self.start_error_seconds = max(self.start_error_seconds, late_seconds)
        if self._connection is None:
            self._connect()
        else:
            self._send(self._connection, request_id, record)

    def _send(
        self, connection: ScheduledConnection, request_id: int, record: RequestRecord
    ) -> None:
        record.started_seconds = self.context.time.seconds()
        self.context.counters.started += 1
        connection.send(self._frame(request_id))

    def _connect(self) -> None:
        if self._connecting or self._finished:
            return
        if self._next_due is None and not self._open:
            return  # nothing left to ask
        self._connecting = True
        self._reconnect(self)

    def _time_out(self, request_id: int) -> None:
        patience = self.context.scenario.timeout_seconds
        self._settle(request_id, Outcome.TIMEOUT, f"no complete answer within {patience:g} s")

    def _settle(self, request_id: int, outcome: Outcome, reason: str = "") -> None:
        record = self._open.pop(request_id)
        self._timers.pop(request_id).cancel()
        record.outcome, record.reason = outcome, reason
        record.finished_seconds = self.context.time.seconds()
        took_seconds = record.finished_seconds - record.intended_start_seconds
        self.context.counters.count(outcome, self._operation, seconds=took_seconds)
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        if self._next_due is None and not self._open and not self._finished:
            self._finished = True
            self.context.on_finished()


class Reconnector:
    """Makes the connections of scheduled clients; mutable state: those being made again.

    Args:
        receive_buffer_bytes: SO_RCVBUF of the connections; 0 leaves the kernel's own.
        connection: Makes a connection of a client.
    """

    def __init__(
        self,
        connector: Connects,
        receive_buffer_bytes: int,
        connection: Callable[[ScheduledClient], ScheduledConnection] = ScheduledConnection,
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
        failure = failure or await connection.open()
        if failure is None:
            client.connected(connection)
        else:
            connection.close()
            client.unreachable(failure)

    def close(self) -> None:
        """Give up connections that are being made."""
        for connecting in self._connecting:
            connecting.cancel()
