"""The messages that one subscription of a topic got, and what is wrong with them.

Plain values: no sockets and no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.clients.records import Outcome, RequestRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONSUMERS = "consumers"
"""The group of those that messages are delivered to."""
_PROBLEMS_KEPT = 100


class Deliveries:
    """The messages of one producer in one subscription; mutable state: which came, and when.

    A message that comes twice, or behind a later one of its order, is wrong. A broker says when
    it delivers again what a lost consumer had: that is counted and right.

    Args:
        name: The subscription, in messages.
        producer: The number that its messages carry.
        orders: How many orders there are: message *n* belongs to number *n* modulo that. 0: none.
        size_bytes: Payload of each message.
    """

    def __init__(self, name: str, producer: int, orders: int, size_bytes: int = 0) -> None:
        self._name = name
        self._producer = producer
        self._orders = orders
        self._size_bytes = size_bytes
        self._last: dict[int, int] = {}  # the latest message of each order
        self.arrived_seconds: dict[int, float] = {}  # by number
        self.doubled = self.out_of_order = self.corrupt = self.redelivered = 0
        self.lost_consumer: str | None = None
        self.problems: list[str] = []

    def take(
        self, message: tuple[int, int] | None, at_seconds: float, *, redelivered: bool = False
    ) -> None:
        """Take one message as it arrived: its producer and number, or None of a broken one."""
        if message is None or message[0] != self._producer:
            self.corrupt += 1
            self._problem("got a message that nobody sent like this")
            return
        number = message[1]
        if number in self.arrived_seconds:
            if redelivered:
                self.redelivered += 1
                return
            self.doubled += 1
            self._problem(f"got message {number} twice")
            return
        self.arrived_seconds[number] = at_seconds
        if not self._orders or redelivered:
            return
        order = number % self._orders
        last = self._last.get(order, 0)
        if number < last:
            self.out_of_order += 1
            self._problem(f"got message {number} behind message {last}")
        self._last[order] = max(last, number)

    def _problem(self, words: str) -> None:
        if len(self.problems) < _PROBLEMS_KEPT:
            self.problems.append(f"{self._name} {words}")

    def missing(self, published: Sequence[RequestRecord]) -> Iterator[int]:
        """Yield the messages that have a receipt and did not come, by their numbers."""
        for number, record in enumerate(published, 1):
            if record.outcome is Outcome.ANSWERED and number not in self.arrived_seconds:
                yield number

    def complete(self, published: Sequence[RequestRecord]) -> bool:
        """Tell whether every message with a receipt is there; none will be once a consumer left."""
        return self.lost_consumer is not None or next(self.missing(published), None) is None

    def detail(self, published: Sequence[RequestRecord]) -> dict[str, Any]:
        """Return the counts of this subscription, for the summary."""
        return {
            "delivered": len(self.arrived_seconds),
            "lost": sum(1 for _ in self.missing(published)),
            "doubled": self.doubled,
            "out_of_order": self.out_of_order,
            "corrupt": self.corrupt,
            "redelivered": self.redelivered,
            "consumers_lost": int(self.lost_consumer is not None),
        }

    def records(
        self,
        published: Sequence[RequestRecord],
        client: int,
        end_seconds: float,
        *,
        interrupted: bool = False,
    ) -> Iterator[RequestRecord]:
        """Yield a record for each message that was to come or came, and each that was wrong.

        Args:
            published: The producer's messages, in order of their numbers.
            client: The number of the subscription in the run.
            end_seconds: When the run ended.
            interrupted: Whether it ended early: then what had not come is left out.
        """
        for number, sent in enumerate(published, 1):
            arrived = self.arrived_seconds.get(number)
            if arrived is None and (interrupted or sent.outcome is not Outcome.ANSWERED):
                continue
            record = self._record(sent, client)
            record.started_seconds = sent.started_seconds
            if arrived is not None:
                record.outcome, record.finished_seconds = Outcome.ANSWERED, arrived
                record.bytes = self._size_bytes
            else:
                record.finished_seconds = end_seconds
                record.outcome = Outcome.WRONG
                record.reason = f"{self._name} never got message {number}, which has a receipt"
                if self.lost_consumer is not None:
                    record.outcome, record.reason = Outcome.DISCONNECTED, self.lost_consumer
            yield record
        for problem in self.problems:
            record = self._record(published[0], client)
            record.started_seconds = record.finished_seconds = end_seconds
            record.outcome, record.reason = Outcome.WRONG, problem
            yield record

    def _record(self, sent: RequestRecord, client: int) -> RequestRecord:
        return RequestRecord(
            client,
            sent.namespace,
            sent.intended_start_seconds,
            operation="deliver",
            group=CONSUMERS,
        )
