"""The producer of an unpartitioned topic, or of a single partition."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.connection_handler import ConnectionHandler
from client.exceptions import (
    AlreadyClosed,
    NotConnected,
    ProducerBlockedQuotaExceededException,
    ProducerFenced,
    PulsarException,
    TopicTerminated,
    server_response_error,
)
from client.messages.enums import ProducerAccessMode
from client.messages.outgoing import SendingProducer
from client.producers.attachment import attach_producer, close_command, producer_command
from client.producers.sending.entry_writer import EntryWriter
from client.producers.sending.send_queue import SendQueue
from limiter.clock import deadline
from limiter.errors import raised_anew

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.connection.cnx import ClientCnx
    from client.context import ClientContext
    from client.producers.options import ProducerOptions
    from client.producers.sending.pending_message import PendingMessage
    from client.producers.statistics import ProducerStatistics

logger = logging.getLogger(__name__)


class TopicProducer:
    """A producer of one topic or partition, attached again after each lost connection.

    Unanswered entries are resent, in order, on each reconnection; the broker recognizes the
    producer by name, and drops repetitions where deduplication is on.

    Args:
        context: State that the client shares with all its producers and consumers.
        topic: Full name of the topic or partition.
        options: Producer options.

    Attributes:
        topic: As given.

    Source: upstream ProducerImpl.
    """

    def __init__(self, context: ClientContext, topic: str, options: ProducerOptions) -> None:
        self._context = context
        self.topic = topic
        self._options = options
        self._id = next(context.producer_ids)
        self._name = options.producer_name or ""
        self._queue = SendQueue(context.memory, context.clock, topic, options)
        self._handler = ConnectionHandler(
            context.cluster,
            topic,
            self._attach,
            on_given_up=self._queue.end,
            final=(TopicTerminated, ProducerFenced),
        )
        # The serving connection; and the connection whose broker knows the producer, serving or
        # not.
        self._cnx: ClientCnx | None = None
        self._known_to: ClientCnx | None = None
        self._asking: tuple[ClientCnx, pb.CommandProducer] | None = None
        self._epoch = 0
        self._topic_epoch: int | None = None
        self._closing = self._ended = False
        self._closed = asyncio.Event()

    # -- attaching ----------------------------------------------------------------------------

    async def open(self, due: float) -> None:
        """Attach the producer to its broker; give up at the time ``due``.

        Raises:
            PulsarException: The broker refused, or was unreachable in time. All submitted messages
                have failed.
        """
        try:
            waits = self._options.access_mode is ProducerAccessMode.WaitForExclusive
            await self._handler.open(
                self._context.operation_timeout_seconds, due=due, bounds_attempts=not waits
            )
        except PulsarException as error:
            self._queue.end(error)
            raise
        except BaseException:
            self._queue.end(AlreadyClosed(f"{self.topic}: its producer was not opened"))
            raise

    async def _attach(self, cnx: ClientCnx) -> None:
        if self._known_to is cnx:
            # After the answer no old receipts arrive: a late receipt could be taken for a resent
            # entry's.
            await cnx.request(lambda number: close_command(self._id, number))
        self._forget()
        command = producer_command(self.topic, self._id, self._options, self._name, self._epoch)
        if self._topic_epoch is not None:
            command.topic_epoch = self._topic_epoch
        cnx.attached.producers[self._id] = self
        self._asking = cnx, command
        try:
            success = await attach_producer(cnx, command)
        except BaseException as error:
            cnx.attached.producers.pop(self._id, None)
            if isinstance(error, ProducerBlockedQuotaExceededException):
                self._queue.fail_pending(error)
            raise
        finally:
            self._asking = None
        self._attached(cnx, success)

    def _attached(self, cnx: ClientCnx, success: pb.CommandProducerSuccess) -> None:
        self._name = success.producer_name
        self._epoch += 1
        if success.HasField("topic_epoch"):
            self._topic_epoch = success.topic_epoch
        if self._id not in cnx.attached.producers:
            return  # Connection lost meanwhile.
        self._cnx = self._known_to = cnx
        if self._queue.ended:
            self._leave()
            return
        producer = SendingProducer(
            self._id, self._name, self._options.compression_type, success.schema_version
        )
        writer = EntryWriter(producer, cnx.max_message_size, self._context.clock)
        self._queue.attach(cnx, writer, success.last_sequence_id)

    def connection_lost(self) -> None:
        """Attach the producer again, because its connection is lost."""
        self._lost(self._handler.lost)

    def closed_by_broker(self, assigned_url: str | None) -> None:
        """Attach the producer again after the broker closed it.

        The producer may have been waiting for exclusive access.
        """
        if self._asking is not None:
            cnx, command = self._asking
            turn = cnx.exclusive_turns.get(command.request_id)
            if turn is not None and not turn.done():
                turn.set_exception(NotConnected(f"{cnx.peer} closed the producer, which waited"))
        self._lost(lambda: self._handler.closed_by_broker(assigned_url))

    def _lost(self, attach_again: Callable[[], None]) -> None:
        self._detach()
        self._known_to = None
        if self._closing:
            self._end_queue()
        elif not self._queue.ended:
            attach_again()

    def _detach(self) -> None:
        """Detach the producer from its connection, and keep its messages."""
        if self._cnx is not None:
            self._cnx.attached.producers.pop(self._id, None)
            self._cnx = None
        self._queue.detach()

    def _leave(self) -> None:
        """Detach the producer from its connection, and close it at the broker."""
        self._detach()
        self._forget()

    def _forget(self) -> None:
        cnx, self._known_to = self._known_to, None
        if cnx is not None and not cnx.closed:
            cnx.turn_writer.flush()
            cnx.send(close_command(self._id))

    # -- the broker's side --------------------------------------------------------------------

    def receipt_received(self, receipt: pb.CommandSendReceipt) -> None:
        """Complete the messages of the entry that the broker's receipt is for."""
        cnx = self._cnx
        if cnx is None:
            return  # The resent entry gets its own receipt.
        if not self._queue.receipt_received(receipt):
            logger.warning(
                "closing %s: %s got the receipt %d before an earlier one",
                cnx.peer,
                self.topic,
                receipt.sequence_id,
            )
            cnx.abort()

    def send_refused(self, error: pb.CommandSendError) -> None:
        """Fail an entry that the broker refused for good.

        After any other error, attach again and resend.

        Source: upstream ClientCnx.handleSendError, closing the connection for all other errors.
        """
        if self._cnx is None:
            return
        refusal = server_response_error(error.error, error.message)
        if isinstance(refusal, TopicTerminated | ProducerFenced):
            self._leave()
            self._queue.end(refusal)
        elif error.error == pb.NotAllowedError:
            self._queue.refuse(error.sequence_id, refusal)
        elif self._closing:
            self._leave()
            self._queue.end(refusal)
        else:
            logger.warning("%s: sending is tried again after %s", self.topic, refusal)
            self._detach()
            self._handler.closed_by_broker(None)

    # -- the program's side -------------------------------------------------------------------

    def submit(self, message: PendingMessage) -> None:
        """Accept a message to send; its future gets the message id or an error.

        Raises:
            ProducerQueueIsFullError, MemoryBufferIsFullError: No capacity, and the message does not
                wait.
            PulsarException: The producer was closed, or has ended.
        """
        self._queue.submit(message)

    def withdraw(self, message: PendingMessage) -> None:
        """Remove the message of a cancelled ``send``, unless it was sent already."""
        self._queue.withdraw(message)

    async def flush(self) -> None:
        """Send open batches, and wait until all messages submitted earlier have a receipt.

        Raises:
            AlreadyClosed, TopicTerminated, ProducerFenced: The producer has ended.
            Exception: The first error among the flushed messages.
        """
        self._queue.check_open()
        if (error := await self._queue.flush()) is not None:
            raise raised_anew(error)

    async def close(self) -> None:
        """Send open batches, wait for the last receipts, and close; fail all other messages.

        Without a connection, or on cancellation, all messages fail immediately. Concurrent calls
        wait for the first.

        Source: upstream ProducerImpl.closeAsync, whose CLOSE_PRODUCER follows all messages.
        """
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        try:
            if self._cnx is not None:
                await self._close_attached(self._cnx)
        except (PulsarException, TimeoutError) as error:
            logger.info("%s: the producer was closed without an answer: %s", self.topic, error)
        finally:
            self.end()
            try:
                await self._queue.flush()
                await self._handler.close()
            finally:
                self._closed.set()

    def end(self) -> None:
        """Close the producer immediately, and fail all pending messages.

        After ``close``, no message is pending.
        """
        self._leave()
        self._end_queue()
        self._handler.stop()

    def _end_queue(self) -> None:
        left, self._ended = 0 if self._ended else self.statistics().pending_messages, True
        if left:
            logger.warning("%s: the producer was closed with %d messages unsent", self.topic, left)
        self._queue.end(self._was_closed())

    async def _close_attached(self, cnx: ClientCnx) -> None:
        self._queue.stop(self._was_closed())
        async with deadline(self._context.clock, self._context.operation_timeout_seconds):
            await self._queue.flush()
            if self._cnx is cnx:
                await cnx.request(lambda number: close_command(self._id, number))
                self._known_to = None

    def _was_closed(self) -> AlreadyClosed:
        return AlreadyClosed(f"the producer of {self.topic} was closed")

    @property
    def name(self) -> str:
        """The producer's name; "" before it is attached for the first time."""
        return self._name

    @property
    def last_sequence_id(self) -> int:
        """The sequence id of the last acknowledged message; -1 if there is none."""
        return self._queue.last_sequence_id

    @property
    def is_connected(self) -> bool:
        """True if the producer is attached to its broker."""
        return self._cnx is not None

    def statistics(self) -> ProducerStatistics:
        """Return the producer's current statistics."""
        return self._queue.statistics(
            producer_name=self._name,
            is_connected=self.is_connected,
            reconnections=self._handler.reconnections,
        )
