"""One topic's consumer: what comes from the broker, and what is said to it."""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from client.connection_handler import ConnectionHandler, may_pass
from client.consumers.acknowledging.acknowledgements import Acknowledgements
from client.consumers.acknowledging.handed_out import HandedOut
from client.consumers.acknowledging.redelivery import Redelivery
from client.consumers.receiving.arrivals import Arrivals
from client.consumers.receiving.position import Position
from client.consumers.receiving.received import Received
from client.consumers.subscribing import Subscription, close_command, subscribe_command
from client.consumers.topic_requests import TopicRequests
from client.exceptions import (
    AlreadyClosed,
    ConsumerBusy,
    NotConnected,
    PulsarException,
    ServerResponseError,
    Timeout,
    server_response_error,
)
from client.messages.enums import ConsumerCryptoFailureAction, ConsumerType
from client.messages.message_id import MessageId
from limiter.clock import deadline
from proto.frames import encode_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from client.connection.cnx import ClientCnx
    from client.consumers.acknowledging.due_times import Place
    from client.consumers.options import ConsumerOptions
    from client.consumers.receiving.inbox import Inbox
    from client.context import ClientContext
    from client.memory.receiver_queue import ReceiverQueue, TopicsQueue
    from client.messages.entry import Entry
    from client.messages.errors import BrokenEntryError
    from client.messages.message import EntryHead, Message
    from proto.frames import Frame

logger = logging.getLogger(__name__)

_MOST_REDELIVERED = 1_000
_ALONE = (ConsumerType.Exclusive, ConsumerType.Failover)


class TopicConsumerState(Enum):
    """A stage of a topic consumer's life."""

    OPEN = "open"
    CLOSED = "closed"
    FAILED = "failed"


class Owner(Protocol):
    """The consumer that a topic's consumer is a part of."""

    def dead_letter(self, topic: TopicConsumer, entry: Entry, messages: int, size: int) -> bool:
        """Take an entry that was redelivered too often; false if it is to be delivered.

        Its messages and bytes are counted until ``TopicConsumer.gone``.
        """

    def redelivering(self, ids: Sequence[MessageId], *, timed_out: bool) -> None:
        """Learn that messages are sent again."""

    def end_of_topic_changed(self) -> None:
        """Learn that a topic's end was reached, or that there is more."""

    def failed(self, topic: TopicConsumer, error: PulsarException) -> None:
        """Learn that a topic will not be attached to again."""


class TopicConsumer:
    """A consumer of one topic, or of one partition.

    It implements what a connection, a receiver queue and the consumer's parts want of it.

    Args:
        context: The client's.
        topic: Full name.
        subscription: Its subscription.
        options: Everything else; ``receiver_queue_size`` is this topic's share.
        inbox: Where its messages are waited for.
        owner: The consumer that it is a part of.
        queues: Gives it its receiver queue.
        start: Where a subscription that is not durable begins.

    Attributes:
        topic: Full name.
        consumer_id: Its number.
        queue: Its permits.
        received: What arrived and was not taken.
        acks: What is acknowledged and not sent.
        redelivery: What is to be sent again.
        handed_out: What the program has.
        position: From where on messages are wanted, if not all.
        taken_id: The place of the message that was taken last.
        is_active: Whether a Failover subscription sends to it; None until it says.
        end_of_topic: Whether the topic was terminated, and all of it was received.
        losses: Of its connections, its own end among them: what came by one is gone with it.
        sought_time: Whether it stands where it stands because a time was sought.
        error: Why it failed.
    """

    # Its attributes are too many for Python to share their names' table between instances.
    __slots__ = (
        "_alone", "_attaching", "_clock", "_cnx", "_context", "_epoch", "_handler", "_inbox",
        "_last_taken", "_newest", "_outstanding", "_owner", "_persistent", "_seeking",
        "_subscription", "acks", "arrivals", "broken_entries", "bytes_received", "consumer_id",
        "end_of_topic", "error", "handed_out", "is_active", "losses", "messages_received",
        "options", "position", "queue", "received", "redelivery", "redelivery_requests",
        "requests", "sought_time", "state", "topic",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913, PLR0915 - what it is made of
        self,
        context: ClientContext,
        topic: str,
        subscription: Subscription,
        options: ConsumerOptions,
        inbox: Inbox,
        owner: Owner,
        queues: TopicsQueue,
        start: Position | None = None,
    ) -> None:
        self._context = context
        self.topic = topic
        self._subscription = subscription
        self.options = options
        self._inbox = inbox
        self._owner = owner
        self.position = start
        self.consumer_id = next(context.consumer_ids)
        self._persistent = not topic.startswith("non-persistent://")
        self._alone = options.consumer_type in _ALONE
        self._epoch = 0
        self.state = TopicConsumerState.OPEN
        self.error: PulsarException | None = None
        self._cnx: ClientCnx | None = None
        self._attaching: asyncio.Future[None] | None = None
        self._seeking = False
        self.losses = 0
        self._outstanding = 0
        self._clock = context.clock
        self.requests = TopicRequests(
            self.consumer_id,
            topic,
            self.connected,
            context.clock,
            options.broker_consumer_stats_cache_time_ms / 1_000,
        )
        self.received = Received(self)
        self.arrivals = Arrivals(self, context.cluster, topic, options)
        self.queue: ReceiverQueue = queues.open(self, options.receiver_queue_size)
        self.acks = Acknowledgements(context.clock, self.consumer_id, options, self)
        self.redelivery = Redelivery(context.clock, options, self)
        self.handed_out = HandedOut(
            self.acks,
            self.redelivery,
            self.queue.acknowledged if options.memory_until_acknowledged else None,
        )
        self._last_taken: tuple[EntryHead, int] | None = None
        self._newest: Place = (-1, -1)
        self.is_active: bool | None = None
        self.end_of_topic = False
        self.messages_received = self.bytes_received = 0
        self.broken_entries = self.redelivery_requests = 0
        self.sought_time = False
        self._handler = ConnectionHandler(
            context.cluster,
            topic,
            self._attach,
            gives_up=_gives_up,
            on_given_up=self._given_up,
        )

    # -- attaching ----------------------------------------------------------------------------

    async def open(self) -> None:
        """Subscribe.

        Raises:
            PulsarException: It failed.
        """
        self._inbox.add(self)
        try:
            await self._handler.open(self._context.operation_timeout_seconds)
        except BaseException as error:
            self.state = TopicConsumerState.FAILED
            if isinstance(error, PulsarException):
                self.error = error
            self._end()
            await self._handler.close()
            raise

    async def _attach(self, cnx: ClientCnx) -> None:
        self._forget_connection()
        cnx.attached.consumers[self.consumer_id] = self
        start = None if self._subscription.durable else self._resume_at()
        try:
            await cnx.request(
                lambda request_id: subscribe_command(
                    request_id,
                    self.consumer_id,
                    self.topic,
                    self._subscription,
                    self.options,
                    self._epoch if self._alone else None,
                    start,
                )
            )
        except BaseException as error:
            cnx.attached.consumers.pop(self.consumer_id, None)
            if not cnx.closed and not _was_refused(error):
                # The broker may have subscribed it, or be about to: its messages would be lost.
                cnx.send(close_command(self.consumer_id))
            raise
        if cnx.closed or cnx.attached.consumers.get(self.consumer_id) is not self:
            return  # The handler sees it too, and tries again.
        self._cnx = cnx
        self._seeking = False
        if self.end_of_topic:
            self.end_of_topic = False
            self._owner.end_of_topic_changed()
        self.acks.flush()
        self.queue.attached()
        self._attached_or_ended()

    def _resume_at(self) -> MessageId:
        """Return where a subscription begins that the broker forgot with the connection."""
        if self._last_taken is not None:
            self.position = Position(self.taken_id, inclusive=False)
        return self.position.sent if self.position is not None else MessageId.latest

    @property
    def taken_id(self) -> MessageId:
        """The id of the message that was taken last; earliest before the first."""
        if self._last_taken is None:
            return MessageId.earliest
        head, index = self._last_taken
        return head.message_id(index)

    @property
    def has_taken(self) -> bool:
        """True if a message was taken since it began, or was sought."""
        return self._last_taken is not None

    @property
    def is_attached(self) -> bool:
        """True if a connection serves it."""
        return self._cnx is not None

    @property
    def reconnections(self) -> int:
        """Times that it was attached again."""
        return self._handler.reconnections

    def connection_lost(self) -> None:
        """See AttachedConsumer."""
        self._forget_connection()
        self._handler.lost()

    def closed_by_broker(self, assigned_url: str | None) -> None:
        """See AttachedConsumer; a subscription that was reset closes its consumers, too."""
        self.acks.drop()
        if self._subscription.durable and not self._seeking:
            self.position = None  # It may stand before that.
        self._forget_connection()
        self._handler.closed_by_broker(assigned_url)

    def _forget_connection(self) -> None:
        """Drop what came by a connection: everything comes again by the next."""
        self._cnx = None
        self.losses += 1
        self._outstanding = 0
        self.queue.detached()
        self.arrivals.clear()
        self.received.clear()
        self.handed_out.clear()
        self.is_active = None

    def _given_up(self, error: PulsarException) -> None:
        logger.warning("%s: the consumer gives up: %s", self.topic, error)
        self.error, self.state = error, TopicConsumerState.FAILED
        self._end()
        self._owner.failed(self, error)

    # -- what comes ---------------------------------------------------------------------------

    def message_received(self, message: pb.CommandMessage, frame: Frame) -> None:
        """See AttachedConsumer."""
        place = message.message_id.ledgerId, message.message_id.entryId
        self._newest = max(self._newest, place)
        dropped = self._seeking or (
            message.HasField("consumer_epoch") and message.consumer_epoch < self._epoch
        )
        if self.position is not None and self.position.is_last_chunk(place):
            dropped = True
            self._acknowledge_unwanted([MessageId(-1, *place)])
        self.arrivals.read(message, frame, dropped=dropped)

    def entry_arrived(self, entry: Entry, messages: int, size_bytes: int) -> None:
        """See Arriving."""
        head = entry.head
        if self.acks.is_pending((head.ledger_id, head.entry_id)):
            self.count_freed(messages, size_bytes)
        elif self.position is not None and self.position.skips_entry(head):
            self._acknowledge_unwanted([head.message_id()])
            self.count_freed(messages, size_bytes)
        elif not self._owner.dead_letter(self, entry, messages, size_bytes):
            first = not self.received.queued
            self.received.append(entry, messages, size_bytes)
            self._inbox.arrived(self, messages, size_bytes, first=first)

    def count_arrived(self, messages: int, size_bytes: int) -> None:
        """See Arriving."""
        self._outstanding -= messages
        self.queue.arrived(messages, size_bytes)

    def count_freed(self, messages: int, size_bytes: int) -> None:
        """See Arriving."""
        self.queue.taken(messages, size_bytes)
        self.queue.acknowledged(size_bytes)

    def gone(self, messages: int, size_bytes: int) -> None:
        """See Receiving."""
        if messages or size_bytes:
            self._inbox.left(messages, size_bytes)
            self.count_freed(messages, size_bytes)

    def broken(self, head: EntryHead, error: BrokenEntryError) -> None:
        """See Receiving."""
        self.acknowledge_broken((head.ledger_id, head.entry_id), error)

    def acknowledge_broken(self, place: Place, error: BrokenEntryError) -> None:
        """See Arriving."""
        logger.warning("%s: entry %d:%d was dropped: %s", self.topic, *place, error)
        self.broken_entries += 1
        if (
            error.validation_error == pb.CommandAck.DecryptionError
            and self.options.crypto_failure_action is ConsumerCryptoFailureAction.FAIL
        ):
            return  # It stays in the subscription, for a consumer that has the key.
        if self._persistent and self._cnx is not None:
            ack = pb.CommandAck(
                consumer_id=self.consumer_id,
                ack_type=pb.CommandAck.Individual,
                validation_error=error.validation_error,
            )
            ack.message_id.add(ledgerId=place[0], entryId=place[1])
            self.send_ack(ack)

    def chunks_dropped(self, ids: Sequence[MessageId], *, acknowledge: bool) -> None:
        """See Arriving."""
        if not self._subscription.durable:
            return  # Asking for them again would bring everything again.
        for one in ids:
            if acknowledge:
                self.acks.entry(one.entry)
            else:
                self.redelivery.refuse(one.entry, 0)

    def wanted(self, head: EntryHead, messages: list[Message]) -> list[Message]:
        """See Receiving."""
        place = head.ledger_id, head.entry_id
        if head.batch_size and (batch := self.acks.partial.get(place)) is not None:
            messages = [one for one in messages if not batch.is_acknowledged(one.batch_index)]
        if self.position is not None and (skipped := self.position.skipped_indexes(head)):
            unwanted = [one.message_id() for one in messages if one.batch_index < skipped]
            self._acknowledge_unwanted(unwanted)
            messages = [one for one in messages if one.batch_index >= skipped]
        return messages

    def _acknowledge_unwanted(self, ids: Iterable[MessageId]) -> None:
        """Acknowledge what stands before the place that was sought: it would come for ever."""
        if self._subscription.durable:
            for message_id in ids:
                self.acks.individual(message_id)

    def active_changed(self, *, is_active: bool) -> None:
        """See AttachedConsumer."""
        self.is_active = is_active

    def end_of_topic_reached(self) -> None:
        """See AttachedConsumer."""
        self.end_of_topic = True
        self._owner.end_of_topic_changed()

    # -- handing over -------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        """See Granting."""
        return self.received.queued + self.arrivals.waiting

    @property
    def outstanding(self) -> int:
        """Permits that the broker has; below 0 after a batch that was larger than they were."""
        return self._outstanding

    @property
    def more_may_come(self) -> bool:
        """See Source."""
        return self._outstanding > 0

    def take(self) -> Message | None:
        """See Source."""
        taken = self.received.pop()
        if taken is None:
            return None
        message, messages, size_bytes = taken
        head = message.entry
        self._last_taken = head, message.batch_index
        self.messages_received += 1
        self.bytes_received += message.size_bytes
        self._inbox.left(messages, size_bytes)
        self.queue.taken(messages, size_bytes)
        self.handed_out.taken(head, size_bytes)
        return message

    def found_nothing(self) -> None:
        """See Source."""
        if self._cnx is None:
            return
        if self._outstanding > 0 and not self.queue.current_size:
            return  # Who was cancelled asked for it already.
        self.queue.found_nothing()

    def grant(self, permits: int) -> None:
        """See Granting."""
        if self._cnx is None or permits <= 0:
            return
        self._outstanding += permits
        flow = pb.CommandFlow(consumer_id=self.consumer_id, messagePermits=permits)
        self._send(pb.BaseCommand(type=pb.BaseCommand.FLOW, flow=flow))

    async def more_is_pending(self) -> bool:
        """See Granting."""
        if self._alone:
            last, acknowledged = await self.requests.last_message_id()
            known = self._newest if acknowledged is None else max(self._newest, acknowledged.entry)
            return last.entry > known
        stats = await self.requests.stats()
        return stats.msgBacklog > 0 and stats.availablePermits <= 0

    # -- acknowledging ------------------------------------------------------------------------

    def acknowledge(self, message_id: MessageId) -> asyncio.Future[None] | None:
        """Acknowledge a message; what is returned is done when the broker has it.

        Raises:
            InvalidMessage: See Acknowledgements.individual.
        """
        self.check_open()
        return self.handed_out.acknowledge(message_id) if self._persistent else None

    def acknowledge_cumulative(self, message_id: MessageId) -> asyncio.Future[None] | None:
        """Acknowledge everything up to a message; see ``acknowledge``.

        Raises:
            CumulativeAcknowledgementNotAllowedError: Others share the subscription.
        """
        self.check_open()
        return self.handed_out.acknowledge_cumulative(message_id) if self._persistent else None

    def settle(self, message_id: MessageId) -> None:
        """Acknowledge a message that went to another topic; it comes again if it is too late."""
        if self.state is TopicConsumerState.OPEN:
            self.acknowledge(message_id)

    def send_ack(self, ack: pb.CommandAck) -> None:
        """See AckLink."""
        self._send(pb.BaseCommand(type=pb.BaseCommand.ACK, ack=ack))

    async def request_ack(self, ack: pb.CommandAck) -> None:
        """See AckLink."""

        def build(request_id: int) -> pb.BaseCommand:
            ack.request_id = request_id
            return pb.BaseCommand(type=pb.BaseCommand.ACK, ack=ack)

        if self._cnx is None:
            raise NotConnected(f"{self.topic} is not connected now")
        # Also for one that is closing: it sends what waits.
        answer = (await self._cnx.request(build)).ackResponse
        if answer.HasField("error"):
            raise server_response_error(answer.error, answer.message)

    # -- redelivery ---------------------------------------------------------------------------

    def negative_acknowledge(self, message_id: MessageId, redelivery_count: int) -> None:
        """Have a message, and with it its whole entry, sent again after its delay."""
        self.check_open()
        if self._persistent:
            self.redelivery.refuse(message_id.entry, redelivery_count)

    def redeliver_unacknowledged(self, entries: list[Place]) -> None:
        """See Redelivering."""
        self._redeliver(entries, timed_out=True)

    def redeliver_refused(self, entries: list[Place]) -> None:
        """See Redelivering."""
        self._redeliver(entries, timed_out=False)

    def _redeliver(self, entries: list[Place], *, timed_out: bool) -> None:
        if self._cnx is None:
            return  # Everything comes again.
        ids = [MessageId(-1, *place, topic_name=self.topic) for place in entries]
        self._owner.redelivering(ids, timed_out=timed_out)
        if self._alone:
            self.redeliver_all()
            return
        places = self.handed_out.returned(entries)
        self.received.drop(set(places))
        for start in range(0, len(places), _MOST_REDELIVERED):
            command = self._redelivery_command()
            for ledger_id, entry_id in places[start : start + _MOST_REDELIVERED]:
                command.message_ids.add(ledgerId=ledger_id, entryId=entry_id)
            self._send_redelivery(command)

    def redeliver_all(self) -> None:
        """Have everything sent again that was not acknowledged; while detached, it is anyhow."""
        if self._cnx is None:
            return
        self.handed_out.clear()
        # What is acknowledged does not come again: the broker has to know it first.
        self.acks.flush()
        command = self._redelivery_command()
        if self._alone:
            self._epoch += 1
            command.consumer_epoch = self._epoch
        self._send_redelivery(command)
        self.arrivals.clear()
        self.received.clear()

    def _redelivery_command(self) -> pb.CommandRedeliverUnacknowledgedMessages:
        return pb.CommandRedeliverUnacknowledgedMessages(consumer_id=self.consumer_id)

    def _send_redelivery(self, command: pb.CommandRedeliverUnacknowledgedMessages) -> None:
        self.redelivery_requests += 1
        self._send(
            pb.BaseCommand(
                type=pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES,
                redeliverUnacknowledgedMessages=command,
            )
        )

    # -- the rest -----------------------------------------------------------------------------

    async def seek(self, target: MessageId | int, *, inclusive: bool) -> None:
        """Go on from a message, or from a time in ms since 1970.

        It ends when the broker, which closes the subscription's consumers, serves this one again.

        Args:
            target: Where to.
            inclusive: Whether a message that is named comes, too.

        Raises:
            PulsarException: The broker refused, or did not serve it again in time.
        """
        self.connected()
        before = self.position
        # By time: a subscription that is not durable would begin anew at the first message.
        sought = target if isinstance(target, MessageId) else MessageId.earliest
        position = Position(sought, inclusive)
        self._seeking = True
        self.acks.drop()
        self.handed_out.clear()
        self.arrivals.clear()
        self.received.clear()
        self.position, self._last_taken, self._newest = position, None, (-1, -1)
        try:
            await self.requests.seek(position.sent if position.message_id is target else target)
        except BaseException:
            if self._seeking:
                # What came meanwhile was dropped, and is to come again from where it stood.
                self._seeking, self.position = False, before
                self.redeliver_all()
            raise
        self._seeking, self.sought_time = False, isinstance(target, int)
        await self.attached()

    async def attached(self) -> None:
        """Wait until a connection serves it, for the operation timeout at most.

        Raises:
            Timeout: None did.
            PulsarException: It failed, or was closed.
        """
        seconds = self._context.operation_timeout_seconds
        try:
            async with deadline(self._clock, seconds):
                while self._cnx is None and self.state is TopicConsumerState.OPEN:
                    if self._attaching is None:
                        self._attaching = asyncio.get_running_loop().create_future()
                    await asyncio.shield(self._attaching)
        except TimeoutError:
            raise Timeout(f"{self.topic} was not subscribed to again in {seconds:g} s") from None
        self.check_open()

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close.

        Raises:
            PulsarException: The broker refused; the consumer stays open.
        """
        self.check_open()
        await self.requests.unsubscribe(force=force)
        await self.close()

    def check_open(self) -> None:
        """Refuse what a closed consumer cannot do.

        Raises:
            AlreadyClosed: It is closed.
            PulsarException: Why it failed.
        """
        if self.state is TopicConsumerState.FAILED and self.error is not None:
            raise self.error
        if self.state is not TopicConsumerState.OPEN:
            raise AlreadyClosed(f"the consumer of {self.topic} is closed")

    def connected(self) -> ClientCnx:
        """Return the connection.

        Raises:
            NotConnected: There is none now.
            PulsarException: See ``check_open``.
        """
        self.check_open()
        if self._cnx is None:
            raise NotConnected(f"{self.topic} is not connected now; it is tried again")
        return self._cnx

    def _send(self, command: pb.BaseCommand) -> None:
        if self._cnx is not None:
            self._cnx.turn_writer.add(encode_command(command))

    async def close(self) -> None:
        """Leave the subscription; once more is harmless.

        Whoever waits or is cancelled in it finds nothing left here.
        """
        if self.state is not TopicConsumerState.OPEN:
            return
        self.state = TopicConsumerState.CLOSED
        cnx, told = self._cnx, False
        try:
            await self.acks.close()
            self._end()
            if cnx is not None and not cnx.closed:
                told = True
                await cnx.request(lambda request_id: close_command(self.consumer_id, request_id))
        except PulsarException as error:
            logger.info("%s: closing the consumer was not confirmed: %s", self.topic, error)
        finally:
            self._end()
            if cnx is not None and not cnx.closed and not told:
                cnx.send(close_command(self.consumer_id))
            await self._handler.close()

    def _end(self) -> None:
        """Give back everything that is held."""
        cnx = self._cnx
        if cnx is not None:
            cnx.attached.consumers.pop(self.consumer_id, None)
        self._forget_connection()
        self.acks.end()
        self.queue.close()
        self._inbox.remove(self)
        self._attached_or_ended()

    def _attached_or_ended(self) -> None:
        waiting, self._attaching = self._attaching, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


def _was_refused(error: BaseException) -> bool:
    return isinstance(error, ServerResponseError)


def _gives_up(error: PulsarException) -> bool:
    """Tell whether a later attachment is hopeless.

    An Exclusive subscription is busy as long as the broker has not noticed that the connection
    before is gone.
    """
    return (
        isinstance(error, ServerResponseError)
        and not may_pass(error)
        and not isinstance(error, ConsumerBusy)
    )
