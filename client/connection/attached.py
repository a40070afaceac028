"""The requests, producers, consumers and topic-list watches that a connection serves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

    from proto.frames import Frame
    from proto.topics_response import TopicsAnswer


class PendingRequest:
    """A request that the server has not answered yet.

    Args:
        admit: Function that decides, given the announced size, whether to read a large response.
        raw: Whether to return the response without decoding it.
    """

    __slots__ = ("admit", "answer", "raw")

    def __init__(self, admit: Callable[[int], bool] | None, *, raw: bool) -> None:
        self.answer: asyncio.Future[pb.BaseCommand | TopicsAnswer] = (
            asyncio.get_running_loop().create_future()
        )
        self.admit = admit
        self.raw = raw

    def resolve(self, answer: pb.BaseCommand | TopicsAnswer) -> None:
        """Pass the response to the waiting caller, unless that caller was cancelled."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: Exception) -> None:
        """Raise an error in the waiting caller, unless that caller was cancelled."""
        if not self.answer.done():
            self.answer.set_exception(error)


class PendingRequests(dict[int, PendingRequest]):
    """The unanswered requests of a connection, keyed by request id."""

    next_id = 0

    def add(self, pending: PendingRequest) -> int:
        """Register a sent request; return the request id assigned to it."""
        request_id, self.next_id = self.next_id, self.next_id + 1
        self[request_id] = pending
        return request_id

    def resolve(self, request_id: int, answer: pb.BaseCommand | TopicsAnswer) -> None:
        """Complete a request with the server's response, unless it is no longer pending."""
        if request_id in self:
            self[request_id].resolve(answer)

    def fail(self, request_id: int, error: Exception) -> None:
        """Complete a request with an error, unless it is no longer pending."""
        if request_id in self:
            self[request_id].fail(error)


class AttachedProducer(Protocol):
    """Interface (typing Protocol) with the methods of a producer that its connection calls.

    The methods must not raise exceptions.
    """

    def receipt_received(self, receipt: pb.CommandSendReceipt) -> None:
        """Process the broker's receipt for a stored message or batch."""

    def send_refused(self, error: pb.CommandSendError) -> None:
        """Process the broker's refusal to store a message or batch."""

    def closed_by_broker(self, assigned_url: str | None) -> None:
        """Attach the producer again after the broker closed it.

        ``assigned_url``, if any, is the broker to attach to. The connection has already removed the
        producer.
        """

    def connection_lost(self) -> None:
        """Attach the producer again on a new connection."""


class AttachedConsumer(Protocol):
    """Interface (typing Protocol) with the methods of a consumer that its connection calls.

    The methods must not raise exceptions.
    """

    def message_received(self, message: pb.CommandMessage, frame: Frame) -> None:
        """Process a received entry, whose bytes follow the command in the frame."""

    def active_changed(self, *, is_active: bool) -> None:
        """Store whether this is now the active consumer of its Failover subscription."""

    def end_of_topic_reached(self) -> None:
        """Record that the topic is terminated, so that no further messages follow."""

    def closed_by_broker(self, assigned_url: str | None) -> None:
        """Attach the consumer again after the broker closed it.

        ``assigned_url``, if any, is the broker to attach to.
        """

    def connection_lost(self) -> None:
        """Attach the consumer again on a new connection."""


class AttachedWatch(Protocol):
    """Interface (typing Protocol) with the methods of a watch that its connection calls.

    The methods must not raise exceptions.
    """

    def update_received(self, update: pb.CommandWatchTopicUpdate) -> None:
        """Apply the broker's list of added and deleted topics."""

    def connection_lost(self) -> None:
        """End the watch, because its connection is lost."""


class Attached:
    """The producers, consumers and watches that use a connection, keyed by the client's ids.

    Commands for unknown ids are dropped: they were in flight while the producer, consumer or watch
    closed.

    Args:
        tls: Whether the connection uses TLS, which then also selects the TLS address of an assigned
            broker.
    """

    __slots__ = ("_tls", "consumers", "producers", "watches")

    def __init__(self, *, tls: bool = False) -> None:
        self._tls = tls
        self.producers: dict[int, AttachedProducer] = {}
        self.consumers: dict[int, AttachedConsumer] = {}
        self.watches: dict[int, AttachedWatch] = {}

    def receive(self, command: pb.BaseCommand, frame: Frame) -> bool:
        """Pass a command to the producer, consumer or watch to which it is addressed.

        Return False for a command that is addressed to none of them.
        """
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
        """Tell all producers, consumers and watches that the connection is lost; forget them."""
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
