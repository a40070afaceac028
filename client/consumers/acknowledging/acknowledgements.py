"""The acknowledgements that one topic's consumer has not sent yet, grouped into few commands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.consumers.acknowledging.partial_batches import PartialBatches
from client.exceptions import AlreadyClosed, InvalidMessage, NotConnected, PulsarException

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from client.consumers.broker_link import BrokerLink
    from client.consumers.options import ConsumerOptions
    from client.messages.message_id import MessageId, Place
    from limiter.clock import Clock, TimerHandle

MOST_PENDING = 100_000
"""Maximum number of acknowledgements that wait for a connection.

Beyond it, the oldest is discarded, so that its message is redelivered and receipts waited for fail.
"""
MOST_IDS = 1_000
"""Maximum number of message ids in one command."""
MOST_WORDS = 8_192
"""Maximum number of bit-set words in a command, which keeps it below brokers' size limits."""
_UNSIGNED = 2**64


class Acknowledgements:
    """The acknowledgements that one topic's consumer has not sent to the broker yet.

    After a lost connection, pending acknowledgements are sent on the next connection before the
    first permit, so their messages are not redelivered.

    Args:
        clock: The source of time.
        options: Longest time and size of a group of acknowledgements, and whether to wait for
            receipts.
        link: Sends the consumer's commands to its broker.

    Attributes:
        partial: Partly acknowledged batches.

    Source: upstream PersistentAcknowledgmentsGroupingTracker.
    """

    def __init__(self, clock: Clock, options: ConsumerOptions, link: BrokerLink) -> None:
        self._clock = clock
        self._seconds = options.ack_group_time_ms / 1_000
        self._most = options.ack_group_size
        self._by_index = options.batch_index_ack_enabled
        self._with_receipt = options.ack_receipt_enabled and link.persistent
        self._link = link
        self._whole: dict[Place, None] = {}
        self._parts: dict[Place, None] = {}
        self._cumulative: tuple[Place, tuple[int, ...]] | None = None
        self._up_to: Place | None = None
        self._timer: TimerHandle | None = None
        self._group: asyncio.Future[None] | None = None
        self._newest: asyncio.Future[None] | None = None
        self._tasks: dict[asyncio.Task[None], list[pb.CommandAck]] = {}
        self._cut_off = PulsarException("the caller no longer waits for the receipt")
        self.partial = PartialBatches()

    @property
    def pending(self) -> int:
        """Number of acknowledgements not sent yet."""
        return len(self._whole) + len(self._parts) + (self._cumulative is not None)

    def is_pending(self, entry: Place) -> bool:
        """Return True if a whole entry's acknowledgement is not sent to the broker yet."""
        return entry in self._whole or (self._up_to is not None and entry <= self._up_to)

    def individual(self, message_id: MessageId) -> bool:
        """Acknowledge a message; return True if its whole entry is now acknowledged.

        Raises:
            InvalidMessage: The id lacks the size of its batch.
        """
        entry, index, size = message_id.entry, message_id.batch_index(), message_id.batch_size
        self._newest = None
        if index < 0 or size == 1:
            self.entry(entry)
            return True
        if size < 1:
            raise InvalidMessage(
                f"{message_id} is in a batch of a size that the id does not give: acknowledge the"
                " message itself, or its message_id()"
            )
        batch = self.partial.begin(entry, size)
        if batch.acknowledge(index) and batch.left and self._by_index:
            self._parts[entry] = None
            self._added()
        if batch.left:
            return False
        self.entry(entry)
        return True

    def entry(self, entry: Place) -> None:
        """Acknowledge all messages of an entry."""
        self.partial.forget(entry)
        self._parts.pop(entry, None)
        self._whole[entry] = None
        self._added()

    def left_out(self, entry: Place, size: int, indexes: Iterable[int]) -> None:
        """Treat a batch's messages that cannot be delivered as if they were acknowledged.

        Such messages were acknowledged before, or compacted away; acknowledging the rest completes
        the entry.
        """
        batch = self.partial.begin(entry, size)
        for index in indexes:
            batch.acknowledge(index)
        if not batch.left:
            self.entry(entry)

    def cumulative(self, message_id: MessageId) -> Place:
        """Acknowledge all messages up to and including a message.

        Return the last entry that is then acknowledged as a whole. Without batch_index_ack_enabled,
        acknowledging the last message of a batch acknowledges the batch; any other message of a
        batch acknowledges only the entries before the batch.
        """
        entry, index, size = message_id.entry, message_id.batch_index(), message_id.batch_size
        words: tuple[int, ...] = ()
        whole = entry
        self._newest = None
        if 0 <= index < size - 1:
            batch = self.partial.begin(entry, size)
            batch.acknowledge_up_to(index)
            if batch.left:
                whole = (entry[0], entry[1] - 1)
                if self._by_index:
                    words = batch.ack_set()
                else:
                    entry = whole
        self.partial.forget_up_to(whole)
        if self._cumulative is None or (entry, not words) >= (
            self._cumulative[0],
            not self._cumulative[1],
        ):
            self._cumulative = entry, words
            self._up_to = max(self._up_to or whole, whole)
        self._added()
        return whole

    def _added(self) -> None:
        if self._with_receipt:
            if self._group is None:
                self._group = asyncio.get_running_loop().create_future()
            self._newest = self._group
        if self.pending >= self._most or not self._seconds:
            self.flush()
            while self.pending > MOST_PENDING:
                oldest = self._whole or self._parts
                del oldest[next(iter(oldest))]
                self._fail_group(  # The oldest may be part of the group.
                    NotConnected(f"{MOST_PENDING} acknowledgements wait for a connection already")
                )
        elif self._timer is None:
            self._timer = self._clock.call_at(self._clock.now() + self._seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Send the pending acknowledgements; do nothing without a connection."""
        if not self.pending or self._link.cnx is None:
            return
        commands = list(self._commands())
        self._forget()
        if not self._with_receipt:
            for ack in commands:
                self._link.acknowledge(ack)
            return
        group, self._group = self._group, None
        task = asyncio.get_running_loop().create_task(self._request(commands, group))
        self._tasks[task] = commands
        task.add_done_callback(self._tasks.pop)

    def flush_ahead(self) -> None:
        """Send all pending acknowledgements now, before a command that depends on them.

        A task sends acknowledgements with receipts later: they are also sent now, without a
        receipt.
        """
        self.flush()
        for commands in self._tasks.values():
            for ack in commands:
                if not ack.HasField("request_id"):  # Else sent already.
                    self._link.acknowledge(ack)

    def _commands(self) -> Iterator[pb.CommandAck]:
        if self._cumulative is not None:
            (ledger_id, entry_id), words = self._cumulative
            ack = self._command(pb.CommandAck.Cumulative)
            # Like upstream's clients: -1 precedes the first entry of a ledger.
            ack.message_id.add(ledgerId=ledger_id, entryId=entry_id % _UNSIGNED, ack_set=words)
            yield ack
        ack, words_left = self._command(pb.CommandAck.Individual), MOST_WORDS
        for entry in self._whole:
            ack.message_id.add(ledgerId=entry[0] % _UNSIGNED, entryId=entry[1] % _UNSIGNED)
            if len(ack.message_id) >= MOST_IDS:
                yield ack
                ack = self._command(pb.CommandAck.Individual)
        for entry in self._parts:
            if (batch := self.partial.get(entry)) is None:
                continue  # Evicted at the limit: the batch is redelivered.
            words = batch.ack_set()
            if words_left < len(words) or len(ack.message_id) >= MOST_IDS:
                yield ack
                ack, words_left = self._command(pb.CommandAck.Individual), MOST_WORDS
            words_left -= len(words)
            ack.message_id.add(ledgerId=entry[0], entryId=entry[1], ack_set=words)
        if ack.message_id:
            yield ack

    def _command(self, kind: pb.CommandAck.AckType.ValueType) -> pb.CommandAck:
        return pb.CommandAck(consumer_id=self._link.consumer_id, ack_type=kind)

    async def _request(
        self, commands: list[pb.CommandAck], group: asyncio.Future[None] | None
    ) -> None:
        try:
            for ack in commands:
                await self._link.request_acknowledgement(ack)
        except PulsarException as error:
            _fail(group, error)
        except asyncio.CancelledError:
            _fail(group, self._cut_off)
            raise
        else:
            if group is not None and not group.done():
                group.set_result(None)

    def receipt(self) -> asyncio.Future[None] | None:
        """Return a future of the broker's receipt for the most recent acknowledgement.

        None if receipts are disabled, or the acknowledgement sends no command yet.
        """
        newest, self._newest = self._newest, None
        return newest

    def drop(self, reason: PulsarException) -> None:
        """Discard the pending acknowledgements, because the subscription is reset or ends."""
        self._forget()
        self.partial.clear()
        self._fail_group(reason)

    def _fail_group(self, reason: PulsarException) -> None:
        _fail(self._group, reason)
        self._group = None

    def _forget(self) -> None:
        self._whole = {}
        self._parts = {}
        self._cumulative = self._up_to = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def sent(self) -> None:
        """Send the pending acknowledgements, and wait for the broker's receipts."""
        self.flush()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def closed_by_broker(self) -> None:
        """Stop waiting for receipts, which the broker does not send after closing a consumer.

        After a reset, acknowledged messages of partly acknowledged batches may be redelivered;
        batches with pending acknowledgements are kept.
        """
        self.partial.keep(self._parts)
        self._cancel(NotConnected("the broker closed the consumer before it answered"))

    def _cancel(self, reason: PulsarException) -> None:
        self._cut_off = reason
        for task in self._tasks:
            task.cancel()

    def end(self) -> None:
        """Discard the pending acknowledgements, and stop waiting for receipts, for good."""
        reason = AlreadyClosed("the consumer was closed before it was acknowledged")
        self.drop(reason)
        self._cancel(reason)


def _fail(group: asyncio.Future[None] | None, error: PulsarException) -> None:
    if group is not None and not group.done():
        group.set_exception(error)
        group.exception()  # Mark as retrieved: the waiter may be gone.
