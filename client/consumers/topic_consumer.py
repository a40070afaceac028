"""The consumer of one topic, which subscribes, reconnects, seeks and closes."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from client.connection_handler import ConnectionHandler
from client.consumers.acknowledging.handed_out import HandedOut
from client.consumers.broker_link import BrokerLink
from client.consumers.receiving.incoming import Incoming
from client.consumers.subscribing import (
    Position,
    Progress,
    Subscription,
    close_command,
    subscribe_command,
)
from client.exceptions import (
    AlreadyClosed,
    PulsarException,
    ServerResponseError,
    Timeout,
)
from client.messages.enums import ConsumerType
from client.messages.message_id import MessageId
from client.patience import in_time
from limiter.clock import deadline

if TYPE_CHECKING:
    from collections.abc import Sequence

    import proto.PulsarApi_pb2 as pb
    from client.connection.cnx import ClientCnx
    from client.consumers.options import ConsumerOptions
    from client.consumers.receiving.inbox import Inbox
    from client.context import ClientContext
    from client.memory.receiver_queues import OpenQueue
    from client.messages.entry import Entry
    from client.messages.message_id import Place
    from proto.frames import Frame

logger = logging.getLogger(__name__)

_ALONE = (ConsumerType.Exclusive, ConsumerType.Failover)


class Owner(Protocol):
    """Interface (typing Protocol) with the methods of the owner that a topic's consumer calls."""

    def dead_letter(self, topic: TopicConsumer, entry: Entry, messages: int, size: int) -> bool:
        """Queue an entry as a dead letter if it was redelivered too often.

        Return False if the entry should be delivered instead. The entry's messages and bytes count
        until ``Incoming.count_freed``.
        """

    async def letters_sent(self) -> None:
        """Wait, if the consumer is closing, until the current dead letter is sent."""

    def redelivering(self, topic: str, entries: Sequence[Place], *, timed_out: bool) -> None:
        """React to the upcoming redelivery of some entries of a topic."""

    def end_changed(self) -> None:
        """React to a topic that has ended, has failed for good, or delivers messages again."""


class TopicConsumer:
    """A consumer of one topic or partition, attached again after each lost connection.

    Messages arrive through ``incoming``; ``handed_out`` tracks each message from handover to
    acknowledgement or redelivery.

    Args:
        context: State that the client shares with all its producers and consumers.
        topic: Full name of the topic.
        subscription: The subscription.
        options: Consumer options, with this topic's share of ``receiver_queue_size``.
        inbox: The merged queue of all topics.
        owner: The multi-topics consumer.
        open_queue: Function that creates the topic's receiver queue.
        start: Start position of a reader's (non-durable) subscription.

    Attributes:
        topic: Full name of the topic.
        link: Sends the consumer's commands to its broker.
        incoming: Messages in the queue, not yet received by the application.
        handed_out: Messages that the application has received and not acknowledged.
        is_active: Whether this is the active consumer of a Failover subscription; None until the
            broker has reported it.
        end_of_topic: Whether the topic is terminated and all its messages are received.
    """

    def __init__(  # noqa: PLR0913 - many collaborators
        self,
        context: ClientContext,
        topic: str,
        subscription: Subscription,
        options: ConsumerOptions,
        inbox: Inbox,
        owner: Owner,
        open_queue: OpenQueue,
        start: Position | None = None,
    ) -> None:
        self._context = context
        self.topic = topic
        self._subscription = subscription
        self._options = options
        self._inbox = inbox
        self._owner = owner
        self._resetting = False  # A seek was sent: the broker closes the consumer.
        self._was_reset = False  # The broker did close it, after the seek.
        self._closing, self._left = False, asyncio.Event()
        self.is_active: bool | None = None
        self.end_of_topic = False
        self.link = BrokerLink(
            context,
            topic,
            alone=options.consumer_type in _ALONE,
            cache_seconds=options.broker_consumer_stats_cache_time_ms / 1_000,
        )
        self.handed_out = HandedOut(
            context.clock,
            options,
            self.link,
            self._redeliver,
            self._freed if options.memory_until_acknowledged else None,
        )
        self.incoming = Incoming(
            context.cluster,
            options,
            self.link,
            self.handed_out,
            inbox,
            open_queue,
            partial(owner.dead_letter, self),
            Progress(start),
            durable=subscription.durable,
            most_bytes=context.largest_message_bytes,
        )
        self._handler = ConnectionHandler(
            context.cluster,
            topic,
            self._attach,
            on_given_up=self._given_up,
        )

    def _freed(self, size_bytes: int) -> None:
        self.incoming.queue.acknowledged(size_bytes)

    # -- attaching ----------------------------------------------------------------------------

    async def open(self, due: float) -> None:
        """Subscribe to the topic; give up at the time ``due``.

        Raises:
            PulsarException: Subscribing failed.
        """
        queue = self.incoming.queue
        self._inbox.add(self.incoming, always_told=not queue.current_size)
        try:
            await self._handler.open(self._context.operation_timeout_seconds, due=due)
        except BaseException as error:
            self._end(error if isinstance(error, PulsarException) else self._closed())
            await self._handler.close()
            raise

    async def _attach(self, cnx: ClientCnx) -> None:
        self._forget_connection()
        link, subscription = self.link, self._subscription
        cnx.attached.consumers[link.consumer_id] = self
        start = None if subscription.durable else self.incoming.progress.resume()
        try:
            await cnx.request(
                partial(
                    subscribe_command,
                    consumer_id=link.consumer_id,
                    topic=self.topic,
                    subscription=subscription,
                    options=self._options,
                    epoch=link.epoch if link.alone else None,
                    start=start,
                )
            )
            await self._seek_again(cnx)
            if cnx.closed or cnx.attached.consumers.get(link.consumer_id) is not self:
                return  # The handler notices, too, and retries.
            link.cnx = cnx
            if self.end_of_topic:
                self.end_of_topic = False
                self._owner.end_changed()
            # Before the first permit: acknowledged messages must not be redelivered.
            await self.handed_out.acks.sent()
            if link.cnx is cnx:
                self.incoming.queue.attached()
                self._inbox.tell_again(self.incoming)
                self.link.attached.set()
        except BaseException as error:
            cnx.attached.consumers.pop(link.consumer_id, None)
            if not cnx.closed and (self._resetting or not isinstance(error, ServerResponseError)):
                # Close a possibly subscribed consumer: its messages would be lost.
                cnx.send(close_command(link.consumer_id))
            self._resetting = False
            raise

    async def _seek_again(self, cnx: ClientCnx) -> None:
        """Repeat a reader's seek to its start time after a reconnection.

        The broker closes the consumer, as for any seek.
        """
        time_ms = self.incoming.progress.unsaid_time
        if not self._subscription.durable and time_ms is not None and not self._was_reset:
            self._resetting = True
            await self.link.seek(time_ms, cnx)

    @property
    def reconnections(self) -> int:
        """Number of times that the consumer was attached again."""
        return self._handler.reconnections

    def connection_lost(self) -> None:
        """Attach the consumer again, because its connection is lost."""
        self._resetting = self._was_reset = False
        self._forget_connection()
        self._handler.lost()

    def closed_by_broker(self, assigned_url: str | None) -> None:
        """Attach the consumer again after the broker closed it, as brokers do for a seek."""
        if self._resetting:
            self.handed_out.acks.drop(
                PulsarException("the subscription was reset before the message was acknowledged")
            )
        self.handed_out.acks.closed_by_broker()
        self._was_reset, self._resetting = self._resetting, False
        if self._subscription.durable and not self.incoming.seeking:
            self.incoming.progress.start = None  # The subscription may stand before the start.
        self._forget_connection()
        self._handler.closed_by_broker(assigned_url)

    def _attach_anew(self) -> None:
        cnx = self.link.cnx
        if cnx is not None:
            cnx.attached.consumers.pop(self.link.consumer_id, None)
            cnx.send(close_command(self.link.consumer_id))
            self.closed_by_broker(None)

    def _forget_connection(self) -> None:
        """Discard the messages of a lost connection; the broker redelivers them."""
        self.link.cnx = None
        self.link.attached.clear()
        self.incoming.connection_lost()
        self.handed_out.clear()
        self.is_active = None

    def _given_up(self, error: PulsarException) -> None:
        logger.warning("%s: the consumer gives up: %s", self.topic, error)
        self._end(error)
        self._owner.end_changed()

    # -- arrivals -----------------------------------------------------------------------------

    def message_received(self, message: pb.CommandMessage, frame: Frame) -> None:
        """Process a received entry, whose bytes follow the command in the frame."""
        self.incoming.message_received(message, frame)

    def active_changed(self, *, is_active: bool) -> None:
        """Store whether this is now the active consumer of its Failover subscription."""
        self.is_active = is_active

    def end_of_topic_reached(self) -> None:
        """Record that the topic is terminated, so that no further messages follow."""
        self.end_of_topic = True
        self._owner.end_changed()

    # -- redelivery ---------------------------------------------------------------------------

    def _redeliver(self, entries: list[Place], *, timed_out: bool) -> None:
        """Request the redelivery of entries, and discard their queued messages."""
        if self.link.cnx is None or not self.link.persistent:
            self.handed_out.returned(entries)  # Everything is redelivered, or nothing ever is.
            return
        self._owner.redelivering(self.topic, entries, timed_out=timed_out)
        if self.link.alone:
            self.redeliver_all()
            return
        places = self.handed_out.returned(entries)
        self.incoming.received.drop(set(places))
        self.link.redeliver(places)

    def redeliver_all(self) -> None:
        """Request the redelivery of all unacknowledged messages."""
        if self.link.cnx is None or not self.link.persistent:
            self.handed_out.clear()
            return
        # The broker must know the acknowledged messages first, or redelivers them.
        self.handed_out.acks.flush_ahead()
        self.link.redeliver_all()
        self.handed_out.clear()
        self.incoming.drop()

    # -- seek and close -----------------------------------------------------------------------

    async def seek(self, target: MessageId | int, *, inclusive: bool) -> None:
        """Move the subscription to a message, or to a time in ms since 1970.

        The broker closes the subscription's consumers; returns once this consumer is served again.

        Args:
            target: Message id, or time in ms since 1970.
            inclusive: Whether to deliver the target message itself, too.

        Raises:
            PulsarException: The broker refused, or did not serve the consumer again in time.
        """
        clock, seconds = self._context.clock, self._context.operation_timeout_seconds
        due = clock.now() + seconds
        await self.link.patiently(partial(self._seek, target, inclusive=inclusive))
        try:
            async with deadline(clock, due - clock.now()):
                await self.link.attached.wait()
        except TimeoutError:
            raise Timeout(f"{self.topic} was not subscribed to again in {seconds:g} s") from None
        self.link.check_open()

    async def _seek(self, target: MessageId | int, *, inclusive: bool) -> None:
        incoming, before = self.incoming, self.incoming.progress
        time_ms = None if isinstance(target, MessageId) else target
        position = Position(
            target if isinstance(target, MessageId) else MessageId.earliest, inclusive
        )
        # If the broker refuses, acknowledged messages must not be redelivered.
        self.handed_out.acks.flush_ahead()
        self.handed_out.acks.partial.clear()
        self.handed_out.clear()
        incoming.drop()
        sought = incoming.progress = Progress(position, time_ms)
        incoming.seeking = self._resetting = True
        try:
            await self.link.seek(position.sent if time_ms is None else time_ms, self.link.cnx)
        except BaseException:
            if incoming.progress is sought:
                self._resetting = False  # If it comes about yet, it is a close as any other.
                incoming.progress = before
                if not self._subscription.durable:
                    before.resume()
                self._seek_ended()
            raise
        if incoming.progress is sought:
            self._seek_ended()

    def _seek_ended(self) -> None:
        """Accept messages again after a seek, and request those discarded during it."""
        self.incoming.seeking = False
        self.redeliver_all()

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close the consumer.

        Raises:
            PulsarException: The broker refused; the consumer stays open.
        """
        self.link.check_open()
        clock, due = self._context.clock, self._context.due()
        try:
            async with deadline(clock, due - clock.now()):
                await self.handed_out.acks.sent()
                await self.link.unsubscribe(force=force)
        except asyncio.CancelledError:
            await self.close()  # The broker may have deleted the subscription with its consumer.
            raise
        except TimeoutError as error:
            self._attach_anew()  # As above; the caller may retry.
            raise Timeout(f"the broker of {self.topic} did not unsubscribe in time") from error
        self.handed_out.acks.end()  # The subscription of the acknowledgements is gone.
        await in_time(clock, due, self.close())

    def _closed(self) -> AlreadyClosed:
        return AlreadyClosed(f"the consumer of {self.topic} is closed")

    async def close(self, *, is_gone: bool = False) -> None:
        """Close the consumer, but keep the subscription; concurrent calls wait for the first.

        Without a connection, pending acknowledgements wait for the next connection; closing takes
        the operation timeout at most. Cancellation leaves nothing open.

        Args:
            is_gone: Whether the topic is deleted, so that sending acknowledgements is pointless.
        """
        if self._closing:
            await self._left.wait()
            return
        if self.link.ended is not None:
            return
        self._closing, closed = True, self._closed()
        cnx, told = None, False
        is_kept = self._subscription.durable and self.link.persistent and not is_gone
        try:
            async with deadline(self._context.clock, self._context.operation_timeout_seconds):
                await self._owner.letters_sent()
                self.link.ended = closed
                if is_kept and self.link.cnx is None and self.handed_out.acks.pending:
                    self.incoming.queue.pause()
                    await self.link.attached.wait()
                await self.handed_out.acks.sent()
                cnx = self.link.cnx
                self._end(closed)
                if cnx is not None and not cnx.closed:
                    told = True
                    await cnx.request(partial(close_command, self.link.consumer_id))
        except (PulsarException, TimeoutError) as error:
            logger.info("%s: closing the consumer was not confirmed: %s", self.topic, error)
        finally:
            cnx = self.link.cnx or cnx
            self._end(closed)
            if cnx is not None and not cnx.closed and not told:
                cnx.send(close_command(self.link.consumer_id))
            self._left.set()
            await self._handler.close()

    def _end(self, reason: PulsarException) -> None:
        """Release all resources of the consumer after it was closed or has failed."""
        self.link.ended = reason
        if self.link.cnx is not None:
            self.link.cnx.attached.consumers.pop(self.link.consumer_id, None)
        self._forget_connection()
        self.handed_out.acks.end()
        self.incoming.queue.close()
        self._inbox.remove(self.incoming)
        self.link.attached.set()  # Waiters find the consumer closed.
