"""Pending work of a connection: requests, producers, consumers and watches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

    from proto.frames import Frame
    from proto.topics_response import TopicsAnswer


class PendingRequest:
    """An unanswered request.

    Args:
        admit: Decides on a large answer at the announcement of its size.
        raw: Whether to return the answer undecoded.
    """

    __slots__ = ("admit", "answer", "raw")

    def __init__(self, admit: Callable[[int], bool] | None, *, raw: bool) -> None:
        self.answer: asyncio.Future[pb.BaseCommand | TopicsAnswer] = (
            asyncio.get_running_loop().create_future()
        )
        self.admit = admit
        self.raw = raw

    def resolve(self, answer: pb.BaseCommand | TopicsAnswer) -> None:
        """Set the answer, unless the caller has left."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: Exception) -> None:
        """Set an error, unless the caller has left."""
        if not self.answer.done():
            self.answer.set_exception(error)


class PendingRequests(dict[int, PendingRequest]):
    """The pending requests of a connection, by request id."""

    next_id = 0

    def add(self, pending: PendingRequest) -> int:
        """Register a request; return its new request id."""
        request_id, self.next_id = self.next_id, self.next_id + 1
        self[request_id] = pending
        return request_id

    def resolve(self, request_id: int, answer: pb.BaseCommand | TopicsAnswer) -> None:
        """Set the answer of a request, if still pending."""
        if request_id in self:
            self[request_id].resolve(answer)

    def fail(self, request_id: int, error: Exception) -> None:
        """Set the error of a request, if still pending."""
        if request_id in self:
            self[request_id].fail(error)


class AttachedProducer(Protocol):
    """Callbacks from a connection to a producer. They must not raise."""

    def receipt_received(self, receipt: pb.CommandSendReceipt) -> None:
        """Handle the receipt of a message or batch."""

    def send_refused(self, error: pb.CommandSendError) -> None:
        """Handle the refusal of a message or batch."""

    def closed_by_broker(self, assigned_url: str | None) -> None:
        """React to the broker closing the producer: reattach, at ``assigned_url`` if given.

        The connection has forgotten the producer.
        """

    def connection_lost(self) -> None:
        """Reattach the producer: its connection is lost."""


class AttachedConsumer(Protocol):
    """Callbacks from a connection to a consumer. They must not raise."""

    def message_received(self, message: pb.CommandMessage, frame: Frame) -> None:
        """Handle an entry; its bytes follow the command in the frame."""

    def active_changed(self, *, is_active: bool) -> None:
        """Handle a change of a Failover subscription's active consumer."""

    def end_of_topic_reached(self) -> None:
        """Handle the end of a terminated topic."""

    def closed_by_broker(self, assigned_url: str | None) -> None:
        """React to the broker closing the consumer: reattach, at ``assigned_url`` if given."""

    def connection_lost(self) -> None:
        """Reattach the consumer: its connection is lost."""


class AttachedWatch(Protocol):
    """Callbacks from a connection to a watch of a topic list. They must not raise."""

    def update_received(self, update: pb.CommandWatchTopicUpdate) -> None:
        """Handle added and removed topics."""

    def connection_lost(self) -> None:
        """React to the loss of the connection, which ends the watch."""


class Attached:
    """The producers, consumers and watches of a connection, by the client's ids.

    Commands for unknown ids are dropped: in flight while their owner left.

    Args:
        tls: Whether the connection uses TLS; redirects keep TLS.
    """

    __slots__ = ("_tls", "consumers", "producers", "watches")

    def __init__(self, *, tls: bool = False) -> None:
        self._tls = tls
        self.producers: dict[int, AttachedProducer] = {}
        self.consumers: dict[int, AttachedConsumer] = {}
        self.watches: dict[int, AttachedWatch] = {}

    def receive(self, command: pb.BaseCommand, frame: Frame) -> bool:
        """Dispatch a command; return false for other kinds of commands."""
        kind = command.type
        if kind == pb.BaseCommand.MESSAGE:
            message = command.message
            if (consumer := self.consumers.get(message.consumer_id)) is not None:
                consumer.message_received(message, frame)
        elif kind == pb.BaseCommand.SEND_RECEIPT:
            receipt = command.send_receipt
            if (producer := self.producers.get(receipt.producer_id)) is not None:
                producer.receipt_received(receipt)
        elif (receiver := _RARE.get(kind)) is not None:
            receiver(self, command)
        else:
            return False
        return True

    def _send_error(self, command: pb.BaseCommand) -> None:
        error = command.send_error
        if (producer := self.producers.get(error.producer_id)) is not None:
            producer.send_refused(error)

    def _close_producer(self, command: pb.BaseCommand) -> None:
        close = command.close_producer
        if (producer := self.producers.pop(close.producer_id, None)) is not None:
            producer.closed_by_broker(self._assigned(close))

    def _close_consumer(self, command: pb.BaseCommand) -> None:
        close = command.close_consumer
        if (consumer := self.consumers.pop(close.consumer_id, None)) is not None:
            consumer.closed_by_broker(self._assigned(close))

    def _assigned(self, close: pb.CommandCloseProducer | pb.CommandCloseConsumer) -> str | None:
        if self._tls:
            return close.assignedBrokerServiceUrlTls or None
        return close.assignedBrokerServiceUrl or None

    def _active_changed(self, command: pb.BaseCommand) -> None:
        change = command.active_consumer_change
        if (consumer := self.consumers.get(change.consumer_id)) is not None:
            consumer.active_changed(is_active=change.is_active)

    def _end_of_topic(self, command: pb.BaseCommand) -> None:
        reached = command.reachedEndOfTopic
        if (consumer := self.consumers.get(reached.consumer_id)) is not None:
            consumer.end_of_topic_reached()

    def _watch_update(self, command: pb.BaseCommand) -> None:
        update = command.watchTopicUpdate
        if (watch := self.watches.get(update.watcher_id)) is not None:
            watch.update_received(update)

    def lost(self) -> None:
        """Notify all owners of the lost connection, and forget them."""
        everybody: list[AttachedProducer | AttachedConsumer | AttachedWatch] = [
            *self.producers.values(),
            *self.consumers.values(),
            *self.watches.values(),
        ]
        for ids in (self.producers, self.consumers, self.watches):
            ids.clear()
        for one in everybody:
            one.connection_lost()


_RARE: dict[pb.BaseCommand.Type.ValueType, Callable[[Attached, pb.BaseCommand], None]] = {
    pb.BaseCommand.SEND_ERROR: Attached._send_error,
    pb.BaseCommand.CLOSE_PRODUCER: Attached._close_producer,
    pb.BaseCommand.CLOSE_CONSUMER: Attached._close_consumer,
    pb.BaseCommand.ACTIVE_CONSUMER_CHANGE: Attached._active_changed,
    pb.BaseCommand.REACHED_END_OF_TOPIC: Attached._end_of_topic,
    pb.BaseCommand.WATCH_TOPIC_UPDATE: Attached._watch_update,
}
