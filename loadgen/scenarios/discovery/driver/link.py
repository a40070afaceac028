"""One connection of a client, and the requests on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.discovery.actions import Unanswered
from loadgen.clients.records import Outcome
from loadgen.scenarios.discovery.driver.ledger import LIST, LOOK_UP, SUBSCRIBE, WATCH
from proto.commands import NO_REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Failure
    from loadgen.clients.wires import BrokerAddress, ListAnswer, Wire, Wires
    from loadgen.scenarios.discovery.driver.ledger import Ledger, Request


@dataclass(frozen=True, slots=True)
class LinkRules:
    """The parts that all connections of a client have in common.

    Attributes:
        ledger: The client's.
        wires: Makes connections.
        patience_seconds: The operation timeout.
        times_out_late: A request's age is looked at once in an operation timeout, as Java does.
        on_made: Told that a connection stands, and whether it did before.
        on_gone: Told that a connection does not stand any more.
        on_lost: Told of a connection that was lost, before the requests on it fail.
        on_updated: Told of the new hash when topics came or went.
        on_consumer_closed: Told of a consumer that the broker closed.
    """

    ledger: Ledger
    wires: Wires
    patience_seconds: float
    times_out_late: bool
    on_made: Callable[[bool], None]
    on_gone: Callable[[], None]
    on_lost: Callable[[Link], None]
    on_updated: Callable[[str], None]
    on_consumer_closed: Callable[[int], None]


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
        "_made",
        "_open",
        "_rules",
        "reconciles",
        "watches",
        "wire",
    )

    def __init__(self, rules: LinkRules, broker: BrokerAddress | None) -> None:
        self._rules = rules
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
            self._rules.wires.connect(self, self._broker)

    def ask(self, request_id: int, request: Request) -> None:
        """Send a request, now or when there is a connection."""
        self._open[request_id] = request
        if self.wire is None:
            self.connect()
        else:
            self._send(self.wire, request_id, request)

    def _send(self, wire: Wire, request_id: int, request: Request) -> None:
        rules = self._rules
        if request.record.operation == WATCH and not self.watches:
            del self._open[request_id]
            rules.ledger.withdraw(request.record)
            request.failed(pb.NotAllowedError, "the server offers no watches")
            return
        rules.ledger.start(request.record)
        clock, patience = rules.ledger.context.clock, rules.patience_seconds
        end = clock.now() + patience
        if rules.times_out_late:
            since = self._connected_at
            end = since + math.ceil((end - since) / patience) * patience
        request.timer = clock.call_at(end, self._time_out, request_id)
        request.send(wire, request_id)

    def close(self) -> None:
        """Close the connection for good; requests under way have not ended."""
        self._gone = True
        wire, self.wire = self.wire, None
        if wire is not None:
            self._rules.on_gone()
            wire.close()

    def abandon(self, outcome: Outcome, reason: str) -> None:
        """End all requests without telling anybody."""
        pending, self._open = self._open, {}
        for request in pending.values():
            self._rules.ledger.end(request, outcome, reason)

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
        self._connected_at = self._rules.ledger.context.clock.now()
        self._rules.on_made(self._made)
        self._made = True
        for request_id, request in list(self._open.items()):
            if self.wire is wire and not request.record.started and request_id in self._open:
                self._send(wire, request_id, request)

    def unreachable(self, reason: str) -> None:
        """Fail what has waited; what is asked next tries again."""
        self._connecting = False
        failed, self._open = self._open, {}
        self._fail(failed, Unanswered.UNREACHABLE, reason)

    def disconnected(self, reason: str) -> None:
        """Fail what was under way."""
        if self._gone or self.wire is None:
            return
        self.wire = None
        lost, self._open = self._open, {}
        self._rules.on_gone()
        self._rules.on_lost(self)
        self._fail(lost, Unanswered.DISCONNECTED, reason)

    def first_byte(self, request_id: int) -> None:
        """Note the moment."""
        request = self._open.get(request_id)
        if request is not None:
            request.record.first_byte_seconds = self._rules.ledger.context.time.seconds()

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
            self._rules.on_updated(topics_hash)

    def subscribed(self, request_id: int) -> None:
        """End a subscription."""
        request = self._taken(request_id, SUBSCRIBE)
        if request is not None:
            self._answer(request, None)

    def consumer_closed(self, consumer_id: int) -> None:
        """Pass on that a consumer is to subscribe again."""
        if not self._gone:
            self._rules.on_consumer_closed(consumer_id)

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
            reason = f"no complete answer within {self._rules.patience_seconds:g} s"
            self._fail({request_id: request}, Unanswered.TIMED_OUT, reason)

    def _taken(self, request_id: int, operation: str) -> Request | None:
        request = self._open.get(request_id)
        if request is None or request.record.operation != operation:
            return None  # its time was up, or nobody asked
        return self._open.pop(request_id)

    def _answer(self, request: Request, answer: object) -> None:
        self._rules.ledger.end(request, Outcome.ANSWERED)
        if not self._gone:
            request.answered(answer)

    def _fail(self, requests: dict[int, Request], failure: Failure, reason: str) -> None:
        for request in requests.values():
            self._rules.ledger.end(request, failure, reason)
        for request in requests.values():
            if not self._gone:  # the client may give up at any of them
                request.failed(failure, reason)
