"""The messages of one topic, from the connection until the application receives them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.consumers.receiving.arrivals import Arrivals
from client.consumers.receiving.received import Received
from client.messages.enums import ConsumerCryptoFailureAction
from client.messages.errors import TooLargeEntryError
from client.messages.message_id import MessageId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from client.consumers.acknowledging.handed_out import HandedOut
    from client.consumers.broker_link import BrokerLink
    from client.consumers.options import ConsumerOptions
    from client.consumers.receiving.inbox import Inbox
    from client.consumers.subscribing import Progress
    from client.memory.receiver_queue import ReceiverQueue
    from client.memory.receiver_queues import OpenQueue
    from client.messages.entry import Entry
    from client.messages.errors import BrokenEntryError
    from client.messages.message import Message
    from client.messages.message_id import Place
    from client.pulsar_client import PulsarClient
    from proto.frames import Frame

logger = logging.getLogger(__name__)


class Incoming:
    """The messages of one topic that the application has not received yet.

    They are counted, decoded and queued; permits limit how many the broker sends.

    Args:
        cluster: Provides the clock, and fetches schema versions.
        options: Consumer options, with this topic's share of ``receiver_queue_size``.
        link: Sends the consumer's commands to its broker.
        handed_out: Tracks the messages that the application has received.
        inbox: The merged queue of all topics.
        open_queue: Function that creates the topic's receiver queue.
        dead_letter: Function that queues an entry redelivered too often as a dead letter, with its
            messages and bytes, which count until ``count_freed``. It returns False if the entry
            should be delivered.
        progress: Start position of a reader's (non-durable) subscription.
        durable: Whether the broker stores the subscription.
        most_bytes: Maximum size of a decompressed message in bytes.

    Attributes:
        queue: The receiver queue, with its permits.
        arrivals: Received entries that are not decoded yet.
        received: Decoded entries that the application has not received yet.
        outstanding: Permits that the broker still has; negative after a batch larger than the
            permits.
        progress: Position that the consumer has reached in the topic.
        losses: Number of lost connections.
        seeking: Whether a seek is in progress, during which arriving entries are discarded.
        messages_received, bytes_received, broken_entries: Counts since the consumer was created.
    """

    def __init__(  # noqa: PLR0913 - many collaborators
        self,
        cluster: PulsarClient,
        options: ConsumerOptions,
        link: BrokerLink,
        handed_out: HandedOut,
        inbox: Inbox,
        open_queue: OpenQueue,
        dead_letter: Callable[[Entry, int, int], bool],
        progress: Progress,
        *,
        durable: bool,
        most_bytes: int,
    ) -> None:
        self._link = link
        self._handed_out = handed_out
        self._acks = handed_out.acks
        self._inbox = inbox
        self._dead_letter = dead_letter
        self._durable = durable
        self._keeps_encrypted = options.crypto_failure_action is ConsumerCryptoFailureAction.FAIL
        self.progress = progress
        self.outstanding = 0
        self.losses = 0
        self.seeking = False
        self.messages_received = self.bytes_received = self.broken_entries = 0
        self.received = Received(self)
        self.arrivals = Arrivals(self, cluster, link.topic, options, most_bytes)
        self.queue: ReceiverQueue = open_queue(self, options.receiver_queue_size)

    # -- arrivals -----------------------------------------------------------------------------

    def message_received(self, message: pb.CommandMessage, frame: Frame) -> None:
        """Process an entry received from the connection."""
        place = message.message_id.ledgerId, message.message_id.entryId
        progress = self.progress
        dropped = self.seeking or (
            message.HasField("consumer_epoch") and message.consumer_epoch < self._link.epoch
        )
        if not dropped and place > progress.newest:
            progress.newest = place
            if progress.oldest is None:
                progress.oldest = place
        if progress.start is not None and progress.start.is_last_chunk(place):
            dropped = True
            self._acknowledge_unwanted([MessageId(-1, *place)])
        self.arrivals.read(message, frame, dropped=dropped)

    def entry_arrived(self, entry: Entry, messages: int, size_bytes: int) -> None:
        """Queue a decoded entry, whose permits and bytes are already counted."""
        head, start = entry.head, self.progress.start
        if self._acks.is_pending((head.ledger_id, head.entry_id)):
            self.count_freed(messages, size_bytes)
        elif start is not None and start.skips_entry(head):
            self._acknowledge_unwanted([head.message_id()])
            self.count_freed(messages, size_bytes)
        elif not self._dead_letter(entry, messages, size_bytes):
            self.received.append(entry, messages, size_bytes)
            self._inbox.arrived(self, messages, size_bytes)

    def count_arrived(self, messages: int, size_bytes: int) -> None:
        """Subtract the permits that a received entry used, and start counting its bytes."""
        self.outstanding -= messages
        self.queue.arrived(messages, size_bytes)

    def count_freed(self, messages: int, size_bytes: int) -> None:
        """Subtract messages that will not be queued from the counted permits and bytes."""
        self.queue.taken(messages, size_bytes)
        self.queue.acknowledged(size_bytes)
        if self._inbox.waiting and self.queue.current_size:
            self.found_nothing()  # The arrival did not serve the waiters.
        else:
            self._inbox.tell_again(self)

    def gone(self, messages: int, size_bytes: int) -> None:
        """Stop counting messages that were removed from the queue without being delivered."""
        if messages or size_bytes:
            self._inbox.left(messages, size_bytes)
            self.count_freed(messages, size_bytes)

    def broken(self, place: Place, error: BrokenEntryError) -> None:
        """Skip an entry that cannot be decoded.

        Report it to the broker as broken, unless another client can decode it.
        """
        logger.warning("%s: entry %d:%d was not delivered: %s", self._link.topic, *place, error)
        self.broken_entries += 1
        self._pass(place)
        if isinstance(error, TooLargeEntryError):
            return
        if error.validation_error == pb.CommandAck.DecryptionError and self._keeps_encrypted:
            return
        ack = pb.CommandAck(
            consumer_id=self._link.consumer_id,
            ack_type=pb.CommandAck.Individual,
            validation_error=error.validation_error,
        )
        ack.message_id.add(ledgerId=place[0], entryId=place[1])
        self._link.acknowledge(ack)

    def chunks_dropped(self, ids: Sequence[MessageId], *, acknowledge: bool) -> None:
        """Acknowledge the chunks of an incomplete message, or have them redelivered."""
        if not self._durable:
            for one in ids:
                self._pass(one.entry)
            return  # A redelivery would repeat everything.
        for one in ids:
            if acknowledge:
                self._acks.entry(one.entry)
            else:
                self._handed_out.redelivery.refuse(one.entry, 0)

    def read(self, entry: Entry) -> list[Message]:
        """Decode further messages of an entry; return those that should be delivered."""
        left = entry.left
        messages = entry.take()
        head = entry.head
        if not head.batch_size:
            return messages
        place = head.ledger_id, head.entry_id
        if len(messages) < left - entry.left:
            first = head.batch_size - left
            missing = set(range(first, head.batch_size - entry.left))
            missing.difference_update(one.batch_index for one in messages)
            if head.batch_size - 1 in missing:
                self._pass(place)
            self._acks.left_out(place, head.batch_size, missing)
        if (batch := self._acks.partial.get(place)) is not None:
            messages = [one for one in messages if not batch.is_acknowledged(one.batch_index)]
        start = self.progress.start
        if start is not None and (skipped := start.skipped_indexes(head)):
            unwanted = [one.message_id() for one in messages if one.batch_index < skipped]
            self._acknowledge_unwanted(unwanted)
            messages = [one for one in messages if one.batch_index >= skipped]
        return messages

    def _pass(self, place: Place) -> None:
        self.progress.passed = max(self.progress.passed, place)

    def _acknowledge_unwanted(self, ids: Iterable[MessageId]) -> None:
        """Acknowledge messages before the seek target.

        Otherwise the broker would redeliver them.
        """
        if self._durable:
            for message_id in ids:
                self._acks.individual(message_id)

    # -- handing over -------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        """Number of messages received from the broker, but not yet by the application."""
        return self.received.queued + self.arrivals.waiting

    @property
    def missing(self) -> int:
        """Number of messages that callers wait for and that are neither queued nor permitted."""
        return self._inbox.waiting - self.queued - self.outstanding

    @property
    def more_may_come(self) -> bool:
        """True if the broker has permits left to send further messages."""
        return self.outstanding > 0

    def take(self) -> Message | None:
        """Remove and return the first message of the queue; return None if it is empty."""
        taken = self.received.pop()
        if taken is None:
            return None
        message, messages, size_bytes = taken
        head = message.entry
        self.progress.last = head, message.batch_index
        self.messages_received += 1
        self.bytes_received += message.size_bytes
        self._inbox.left(messages, size_bytes)
        self.queue.taken(messages, size_bytes)
        self._handed_out.taken(head, size_bytes)
        return message

    def found_nothing(self) -> None:
        """Request messages, because the application waits and the queue is empty."""
        if self._link.cnx is not None:
            self.queue.found_nothing()

    def grant(self, permits: int) -> None:
        """Permit the broker to send ``permits`` further messages (FLOW)."""
        if self._link.cnx is not None and permits > 0:
            self.outstanding += permits
            self._link.grant(permits)

    async def more_is_pending(self) -> bool:
        """Return True if the broker has more messages than it is permitted to send."""
        if self._link.alone:
            last, acknowledged = await self._link.last_message_id()
            newest = self.progress.newest
            known = newest if acknowledged is None else max(newest, acknowledged.entry)
            return last.entry > known
        stats = await self._link.stats()
        return stats.msgBacklog > 0 and stats.availablePermits <= 0

    # -- drops --------------------------------------------------------------------------------

    def drop(self) -> None:
        """Discard queued messages, because they are redelivered or not wanted."""
        self.arrivals.clear()
        self.received.clear()

    def connection_lost(self) -> None:
        """Discard the queued messages of a lost connection, and reset their counts."""
        self.losses += 1
        self.outstanding = 0
        self.progress.connection_lost()
        self.queue.detached()
        self.drop()
