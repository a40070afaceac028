"""A client's connections and the requests on them: each request has one row, and one end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import proto.PulsarApi_pb2 as pb
from client.discovery.actions import Unanswered
from loadgen.clients.records import Outcome, RequestRecord
from proto.commands import NO_REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Failure
    from limiter.clock import TimerHandle
    from loadgen.clients.context import ClientContext
    from loadgen.clients.wires import BrokerAddress, ListAnswer, Wire, Wires
    from loadgen.scenarios.discovery.scenario import FamilyClientPlan

LIST, LOOK_UP, WATCH, SUBSCRIBE = "list", "lookup", "watch", "subscribe"
"""Operations, as rows name them."""

_OUTCOMES = {
    Unanswered.TIMED_OUT: Outcome.TIMEOUT,
    Unanswered.DISCONNECTED: Outcome.DISCONNECTED,
    Unanswered.UNREACHABLE: Outcome.UNREACHABLE,
}


class Request:
    """One request until it ends.

    Args:
        record: Its row.
        send: Sends it on a wire, with its number.
        answered: Told what was answered.
        failed: Told why there was no answer: the code, and words.
    """

    __slots__ = ("answered", "failed", "record", "send", "timer")

    def __init__(
        self,
        record: RequestRecord,
        send: Callable[[Wire, int], None],
        answered: Callable[[Any], None],
        failed: Callable[[Failure, str], None],
    ) -> None:
        self.record = record
        self.send = send
        self.answered = answered
        self.failed = failed
        self.timer: TimerHandle | None = None


class Link:
    """One connection, made when there is something to send, and made again when it was lost.

    It is the end that a wire tells what happens.

    Attributes:
        watches, reconciles: Offered by the server of the present connection.
        wire: None while there is no connection.
    """

    __slots__ = (
        "_broker",
        "_connected_at",
        "_connecting",
        "_gone",
        "_links",
        "_made",
        "_open",
        "reconciles",
        "watches",
        "wire",
    )

    def __init__(self, links: Links, broker: BrokerAddress | None) -> None:
        self._links = links
        self._broker = broker
        self._open: dict[int, Request] = {}
        self._connecting = self._gone = self._made = False
        self.watches = self.reconciles = False
        self._connected_at = 0.0
        self.wire: Wire | None = None

    def connect(self) -> None:
        """See that there is a connection, or will be."""
        if self.wire is None and not self._connecting:
            self._connecting = True
            self._links.wires.connect(self, self._broker)

    def ask(self, request_id: int, request: Request) -> None:
        """Send a request, now or when there is a connection."""
        self._open[request_id] = request
        if self.wire is None:
            self.connect()
        else:
            self._send(self.wire, request_id, request)

    def _send(self, wire: Wire, request_id: int, request: Request) -> None:
        links = self._links
        if request.record.operation == WATCH and not self.watches:
            del self._open[request_id]
            links.records.remove(request.record)
            links.ended()
            request.failed(pb.NotAllowedError, "the server offers no watches")
            return
        request.record.started_seconds = links.context.time.seconds()
        links.context.counters.started += 1
        now, patience = links.context.clock.now(), links.patience_seconds
        end = now + patience
        if links.times_out_late:
            # Java looks at the age of a connection's requests once in an operation timeout.
            since = self._connected_at
            end = since + math.ceil((end - since) / patience) * patience
        request.timer = links.context.clock.call_at(end, self._time_out, request_id)
        request.send(wire, request_id)

    def close(self) -> None:
        """Close the connection for good; requests under way have not ended."""
        self._gone = True
        wire, self.wire = self.wire, None
        if wire is not None:
            self._links.open_connections -= 1
            wire.close()

    def abandon(self, outcome: Outcome, reason: str) -> None:
        """End all requests without telling anybody."""
        pending, self._open = self._open, {}
        for request in pending.values():
            self._end(request, outcome, reason)

    def drop(self, reason: str) -> None:
        """Lose the connection of the client's own accord."""
        if self.wire is not None:
            self.wire.close()
            self.disconnected(reason)

    # -- see WireEvents -----------------------------------------------------------------------

    def connected(self, wire: Wire, *, watches: bool, reconciles: bool) -> None:
        """Send what has waited."""
        if self._gone or self.wire is not None:
            wire.close()
            return
        self._connecting = False
        self.wire, self.watches, self.reconciles = wire, watches, reconciles
        self._connected_at = self._links.context.clock.now()
        self._links.count_connection(again=self._made)
        self._made = True
        for request_id, request in list(self._open.items()):
            if self.wire is wire and not request.record.started and request_id in self._open:
                self._send(wire, request_id, request)

    def unreachable(self, reason: str) -> None:
        """Fail what has waited; what is asked next tries again."""
        self._connecting = False
        self._fail_all(Unanswered.UNREACHABLE, reason)

    def disconnected(self, reason: str) -> None:
        """Fail what was under way."""
        if self._gone or self.wire is None:
            return
        self.wire = None
        self._links.open_connections -= 1
        lost, self._open = self._open, {}
        self._links.on_lost(self)
        self._fail(lost, Unanswered.DISCONNECTED, reason)

    def first_byte(self, request_id: int) -> None:
        """Note the moment."""
        request = self._open.get(request_id)
        if request is not None:
            request.record.first_byte_seconds = self._links.context.time.seconds()

    def listed(self, request_id: int, answer: ListAnswer) -> None:
        """End a listing."""
        request = self._taken(request_id, LIST)
        if request is not None:
            request.record.answer, request.record.bytes = answer.body, answer.size_bytes
            self._answer(request, answer)

    def looked_up(self, request_id: int, broker: BrokerAddress) -> None:
        """End a lookup."""
        request = self._taken(request_id, LOOK_UP)
        if request is not None:
            self._answer(request, broker)

    def watch_opened(self, request_id: int, topics_hash: str, names: int) -> None:
        """End the opening of a watch."""
        del names
        request = self._taken(request_id, WATCH)
        if request is not None:
            self._answer(request, topics_hash)

    def watch_updated(self, watcher_id: int, topics_hash: str, names: int) -> None:
        """Pass on that topics came or went."""
        del watcher_id, names
        if not self._gone:
            self._links.on_updated(topics_hash)

    def subscribed(self, request_id: int) -> None:
        """End a subscription."""
        request = self._taken(request_id, SUBSCRIBE)
        if request is not None:
            self._answer(request, None)

    def consumer_closed(self, consumer_id: int) -> None:
        """Pass on that a consumer is to subscribe again."""
        if not self._gone:
            self._links.on_consumer_closed(consumer_id)

    def refused(self, request_id: int, error: pb.ServerError.ValueType, reason: str) -> None:
        """End a request; a refusal that names none ends all that were sent."""
        if request_id == NO_REQUEST:
            sent = {number: each for number, each in self._open.items() if each.record.started}
            self._open = {n: each for n, each in self._open.items() if n not in sent}
            self._fail(sent, error, reason)
        elif request_id in self._open:
            self._fail({request_id: self._open.pop(request_id)}, error, reason)

    # -- ends ---------------------------------------------------------------------------------

    def _time_out(self, request_id: int) -> None:
        request = self._open.pop(request_id, None)
        if request is not None:
            reason = f"no complete answer within {self._links.patience_seconds:g} s"
            self._fail({request_id: request}, Unanswered.TIMED_OUT, reason)

    def _taken(self, request_id: int, operation: str) -> Request | None:
        request = self._open.get(request_id)
        if request is None or request.record.operation != operation:
            return None  # its time was up, or nobody asked
        return self._open.pop(request_id)

    def _answer(self, request: Request, answer: object) -> None:
        self._end(request, Outcome.ANSWERED)
        if not self._gone:
            request.answered(answer)

    def _fail_all(self, failure: Failure, reason: str) -> None:
        failed, self._open = self._open, {}
        self._fail(failed, failure, reason)

    def _fail(self, requests: dict[int, Request], failure: Failure, reason: str) -> None:
        outcome = Outcome.REFUSED
        if isinstance(failure, Unanswered):
            outcome = _OUTCOMES[failure]
        for request in requests.values():
            self._end(request, outcome, reason)
        for request in requests.values():
            if not self._gone:  # the client may give up at any of them
                request.failed(failure, reason)

    def _end(self, request: Request, outcome: Outcome, reason: str = "") -> None:
        if request.timer is not None:
            request.timer.cancel()
        record = request.record
        record.outcome, record.reason = outcome, reason
        record.finished_seconds = self._links.context.time.seconds()
        if record.first_byte_seconds is None and outcome in (Outcome.ANSWERED, Outcome.REFUSED):
            record.first_byte_seconds = record.finished_seconds
        took_seconds = record.finished_seconds - record.intended_start_seconds
        self._links.context.counters.count(
            outcome, record.operation, seconds=took_seconds, family=record.family
        )
        self._links.ended()


class Links:
    """All connections of one client: that to the service URL, and those to brokers.

    Args:
        plan: The client's.
        context: The task's.
        wires: Makes connections.
        on_lost: Told of a connection that is gone, before the requests on it fail.
        on_updated: Told of the new hash when topics came or went.
        on_consumer_closed: Told of a consumer that the broker closed.

    Attributes:
        service: The connection to the service URL.
        records: A row for each request.
        reconnects: Connections that were made again behind a loss.
        most_connections: Connections at once, at most.
        pending: Requests that have not ended.
        connected_at: When the first was made, on the run's monotonic clock.
    """

    def __init__(
        self,
        plan: FamilyClientPlan,
        context: ClientContext[Any],
        wires: Wires,
        *,
        on_lost: Callable[[Link], None],
        on_updated: Callable[[str], None],
        on_consumer_closed: Callable[[int], None],
    ) -> None:
        self._plan = plan
        self._brokers: dict[BrokerAddress, Link] = {}
        self.context = context
        self.wires = wires
        self.on_lost = on_lost
        self.on_updated = on_updated
        self.on_consumer_closed = on_consumer_closed
        self.patience_seconds = plan.group.operation_timeout_seconds
        self.times_out_late = plan.group.family.startswith("java")
        self.records: list[RequestRecord] = []
        self.reconnects = self.open_connections = self.most_connections = 0
        self.connected_at: float | None = None
        self._asked = 0
        self._on_idle: Callable[[], None] | None = None
        self.pending = 0
        self.service = Link(self, None)

    def to(self, broker: BrokerAddress) -> Link:
        """Return the connection to a broker; through a proxy it is one of its own."""
        if self.wires.serves(broker):
            return self.service
        if broker not in self._brokers:
            self._brokers[broker] = Link(self, broker)
        return self._brokers[broker]

    def request(
        self,
        link: Link,
        operation: str,
        send: Callable[[Wire, int], None],
        answered: Callable[[Any], None],
        failed: Callable[[Failure, str], None],
        intended_seconds: float | None = None,
    ) -> None:
        """Ask; one of ``answered`` and ``failed`` is called, unless all is closed before."""
        if intended_seconds is None:
            intended_seconds = self.context.time.seconds()
        plan = self._plan
        record = RequestRecord(
            plan.client,
            plan.namespace.name,
            intended_seconds,
            operation=operation,
            group=plan.group.name,
            family=plan.group.family,
        )
        self.records.append(record)
        self._asked += 1
        self.pending += 1
        link.ask(self._asked, Request(record, send, answered, failed))

    def count_connection(self, *, again: bool) -> None:
        """Count a connection that was made."""
        self.reconnects += again
        self.open_connections += 1
        self.most_connections = max(self.most_connections, self.open_connections)
        if self.connected_at is None:
            self.connected_at = self.context.time.monotonic()

    def ended(self) -> None:
        """Count a request that ended."""
        self.pending -= 1
        self._tell_if_idle()

    def when_idle(self, on_idle: Callable[[], None]) -> None:
        """Have it told when all requests have ended, once."""
        self._on_idle = on_idle
        self._tell_if_idle()

    def _tell_if_idle(self) -> None:
        if self._on_idle is not None and self.pending == 0:
            on_idle, self._on_idle = self._on_idle, None
            on_idle()

    def drop(self, reason: str) -> None:
        """Lose all connections of the client's own accord."""
        for link in self._all():
            link.drop(reason)

    def close(self, outcome: Outcome | None, reason: str) -> None:
        """Close all connections; a later request makes new ones.

        Args:
            outcome: Of requests under way; None leaves them without an end.
            reason: For it.
        """
        closed = self._all()
        self.service, self._brokers = Link(self, None), {}
        for link in closed:
            link.close()
            if outcome is not None:
                link.abandon(outcome, reason)

    def _all(self) -> list[Link]:
        return [self.service, *self._brokers.values()]
