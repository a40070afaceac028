"""The public class Producer, and the function that opens one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, Self

from client.arguments import full_name
from client.interceptors import ProducerInterceptors
from client.messages.message import ValueT
from client.producers.partitioned_producer import PartitionedProducer
from client.producers.sending.pending_message import MessageArguments
from client.producers.topic_producer import TopicProducer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from client.context import ClientContext
    from client.messages.message_id import MessageId
    from client.producers.options import ProducerOptions
    from client.producers.sending.pending_message import PendingMessage
    from client.producers.statistics import ProducerStatistics


class Producer(Generic[ValueT]):
    """A producer, which publishes messages to a topic.

    ``Client.create_producer`` creates it.

    Example:
        async with await client.create_producer("orders") as producer:
            message_id = await producer.send(b"one", partition_key="anna")

    Args:
        sending: The topic's producer, partitioned or not.
        options: Producer options.
        context: The client's context; its clock is the base of ``deliver_after``.
    """

    def __init__(
        self,
        sending: TopicProducer | PartitionedProducer,
        options: ProducerOptions,
        context: ClientContext,
    ) -> None:
        self._sending = sending
        self._parts = context.parts
        self._interceptors = ProducerInterceptors(options.interceptors)
        self._is_intercepted = bool(self._interceptors)
        self._closed = False
        self._waits = options.waits
        self._arguments = MessageArguments(options.schema, context.clock)

    def __repr__(self) -> str:
        return f"<Producer {self.producer_name()} of {self.topic()}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(  # noqa: PLR0913 - the official client's arguments
        self,
        content: ValueT | bytes | None,
        properties: Mapping[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool | None = None,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> MessageId:
        """Publish a message; wait for the broker's receipt, and return the message's id.

        Waits for a queue slot and memory, in order of calls, unless ``block_if_queue_full=False``.
        Cancelled during the wait, the message is not sent; cancelled later, the message is still
        sent, and holds its memory until answered.

        Args:
            content: A value of the schema, or bytes without a schema; with AvroSchema also encoded
                bytes. None is a null value, which makes compaction remove the key.
            properties: Properties that the application attaches to the message.
            partition_key: Key that determines the partition, the Key_Shared consumer and
                compaction.
            ordering_key: Key that determines the Key_Shared consumer instead of partition_key.
            sequence_id: Number by which the broker recognizes duplicates; None uses the next
                number.
            replication_clusters: Clusters to replicate to; None for the namespace's.
            disable_replication: Whether to keep the message in the local cluster.
            event_timestamp: Event time set by the application, in ms since 1970.
            deliver_at: Earliest time of delivery to Shared consumers, in ms since 1970.
            deliver_after: Shortest time until delivery to Shared consumers.

        Raises:
            Timeout: No receipt arrived within the send timeout.
            ProducerQueueIsFullError, MemoryBufferIsFullError: No capacity, and
                ``block_if_queue_full`` is False.
            MessageTooBig: The message exceeds the broker's limit.
            AlreadyClosed, TopicTerminated, ProducerFenced: The producer has ended.
            TypeError, ValueError: An argument has the wrong type, a number is out of range, or a
                text is not UTF-8.
        """
        message = self._arguments.message(
            content,
            properties,
            partition_key,
            ordering_key,
            sequence_id,
            replication_clusters,
            disable_replication,
            event_timestamp,
            deliver_at,
            deliver_after,
            waits=self._waits,
        )
        del content  # Release the content early.
        self._submit(message)
        try:
            return await message.result
        except asyncio.CancelledError:
            self._sending.withdraw(message)
            raise

    def send_nowait(  # noqa: PLR0913 - the arguments of send
        self,
        content: ValueT | bytes | None,
        properties: Mapping[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: Sequence[str] | None = None,
        disable_replication: bool | None = None,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> asyncio.Future[MessageId]:
        """Publish a message without waiting, and return a future of its message id.

        The arguments are those of :meth:`send`. Ignoring or cancelling the future does not stop the
        message.

        Raises:
            The errors of :meth:`send` known immediately; later errors are set on the future.
        """
        message = self._arguments.message(
            content,
            properties,
            partition_key,
            ordering_key,
            sequence_id,
            replication_clusters,
            disable_replication,
            event_timestamp,
            deliver_at,
            deliver_after,
            waits=False,
        )
        self._submit(message)
        return message.result

    def _submit(self, message: PendingMessage) -> None:
        if not self._is_intercepted:
            self._sending.submit(message)
            return
        self._interceptors.before_send(self, message)
        contents = message.payload, message.properties
        message.result.add_done_callback(lambda result: self._answered(message, contents, result))
        try:
            self._sending.submit(message)
        except Exception as error:
            message.fail(error)
            raise

    def _answered(
        self,
        message: PendingMessage,
        contents: tuple[bytes | None, Mapping[str, str] | None],
        result: asyncio.Future[MessageId],
    ) -> None:
        message.payload, message.properties = contents  # Restore the fields cleared by entries.
        error: BaseException | None
        if result.cancelled():
            error = asyncio.CancelledError("the send was cancelled")
        else:
            error = result.exception()
        message_id = None if error is not None else result.result()
        self._interceptors.on_send_acknowledgement(self, message, message_id, error)

    async def flush(self) -> None:
        """Send open batches, and wait until all messages sent earlier have a receipt.

        Raises:
            AlreadyClosed, TopicTerminated, ProducerFenced: The producer has ended.
            Timeout, MessageTooBig, ...: The first error among the flushed messages.
        """
        await self._sending.flush()

    async def close(self) -> None:
        """Send pending messages, wait for their receipts, and close the producer.

        Messages that have no receipt by then fail. Cancellation closes the producer immediately.
        Further calls do nothing but wait until the producer has closed.
        """
        is_first, self._closed = not self._closed, True
        try:
            await self._sending.close()
        finally:
            self._parts.discard(self)
            if is_first:
                self._interceptors.on_close()

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._sending.topic

    def producer_name(self) -> str:
        """Return the producer's name, which the application or the broker has chosen."""
        return self._sending.name

    def last_sequence_id(self) -> int:
        """Return the sequence id of the last acknowledged message; -1 if there is none.

        Includes earlier producers of the same name.
        """
        return self._sending.last_sequence_id

    def is_connected(self) -> bool:
        """Return True if the producer is attached to its broker."""
        return self._sending.is_connected

    def statistics(self) -> ProducerStatistics:
        """Return the producer's current statistics."""
        return self._sending.statistics()


async def open_producer(
    context: ClientContext, topic: str, options: ProducerOptions
) -> Producer[Any]:
    """Return a producer that is attached to its topic, or to all partitions of it.

    Raises:
        InvalidTopicName: The topic's name is invalid.
        PulsarException: The broker refused, or was unreachable in time.
    """
    name = full_name(topic)
    due = context.due()
    partitions = await context.partitions(name)
    sending: TopicProducer | PartitionedProducer
    if partitions:
        sending = PartitionedProducer(context, name, partitions, options)
    else:
        sending = TopicProducer(context, name, options)
    try:
        await sending.open(due)
    except BaseException:
        await sending.close()
        raise
    return Producer(sending, options, context)
