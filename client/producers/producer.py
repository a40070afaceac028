"""A producer as programs have it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from client.interceptors import ProducerInterceptors
from client.producers.message_arguments import MessageArguments
from client.producers.partitioned_producer import PartitionedProducer
from client.producers.topic_producer import TopicProducer
from client.topic_names import full_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from client.context import ClientContext
    from client.messages.message_id import MessageId
    from client.producers.options import ProducerOptions
    from client.producers.sending.pending_message import PendingMessage
    from client.producers.statistics import ProducerStatistics


class Producer:
    """Publishes messages to one topic; made by ``Client.create_producer``.

    Example:
        async with await client.create_producer("orders") as producer:
            message_id = await producer.send(b"one", partition_key="anna")

    Args:
        sending: The producer of the topic.
        options: The program's choices.
        context: Forgets the producer when it is closed; its clock is where ``deliver_after``
            counts from.
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
        content: Any,  # noqa: ANN401 - what a schema takes only it knows
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
        """Publish a message, and return its id when the broker has it.

        Waits for a place in the queue and for memory, in order, unless the producer was made with
        ``block_if_queue_full=False``. Cancelled while it waits for these, nothing is sent;
        cancelled later, the message is on its way, and its memory is held until it is answered.

        Args:
            content: What the schema takes; bytes without one. None is a null value: it removes
                its key where topics are compacted.
            properties: The program's own.
            partition_key: Chooses the partition; Key_Shared and compaction go by it.
            ordering_key: Key_Shared goes by it rather.
            sequence_id: Its number, for brokers that remove duplicates; None counts.
            replication_clusters: Clusters it goes to; None for the namespace's.
            disable_replication: Whether it stays in this cluster.
            event_timestamp: Its own time, in ms since 1970.
            deliver_at: Shared consumers do not get it before, in ms since 1970.
            deliver_after: The same, from now.

        Raises:
            Timeout: No receipt in time.
            ProducerQueueIsFullError, MemoryBufferIsFullError: There is no room, and it does not
                wait.
            MessageTooBig: It is larger than the broker takes.
            AlreadyClosed, TopicTerminated, ProducerFenced: The producer has ended.
            TypeError, ValueError: An argument is of the wrong kind, a number out of its range, or a
                text not UTF-8.
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
        del content  # It is held for as long as it is needed only.
        self._submit(message)
        try:
            return await message.result
        except asyncio.CancelledError:
            self._sending.withdraw(message)
            raise

    def send_nowait(  # noqa: PLR0913 - the arguments of send
        self,
        content: Any,  # noqa: ANN401 - what a schema takes only it knows
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
        """Publish a message without waiting, and return the future of its id.

        Nothing is lost when the future is not looked at, or cancelled: the message is on its way.

        Its arguments are those of :meth:`send`.

        Raises:
            The errors of :meth:`send` that are known at once; the others the future has.
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
        message.payload, message.properties = contents  # Entries had them meanwhile.
        error: BaseException | None
        if result.cancelled():
            error = asyncio.CancelledError("nobody waits for the message any more")
        else:
            error = result.exception()
        message_id = None if error is not None else result.result()
        self._interceptors.on_send_acknowledgement(self, message, message_id, error)

    async def flush(self) -> None:
        """Send open batches, and return when all messages sent before are answered.

        Raises:
            AlreadyClosed, TopicTerminated, ProducerFenced: The producer has ended.
            Timeout, MessageTooBig, ...: One of those messages failed; the error is the first's.
        """
        await self._sending.flush()

    async def close(self) -> None:
        """Send what is under way, wait for its receipts, and end; what has none then fails.

        Cancelled, it ends at once. Once more is harmless: it returns when the producer has ended.
        """
        is_first, self._closed = not self._closed, True
        try:
            await self._sending.close()
        finally:
            self._parts.discard(self)
            if is_first:
                self._interceptors.on_close()

    def topic(self) -> str:
        """Return the topic's full name."""
        return self._sending.topic

    def producer_name(self) -> str:
        """Return the name that the program or the broker gave the producer."""
        return self._sending.name

    def last_sequence_id(self) -> int:
        """Return the number of the newest message that the broker has; -1 for none.

        That of a producer with the same name before counts, too.
        """
        return self._sending.last_sequence_id

    def is_connected(self) -> bool:
        """Return whether the producer is attached at this moment."""
        return self._sending.is_connected

    def statistics(self) -> ProducerStatistics:
        """Return a frozen snapshot of the figures."""
        return self._sending.statistics()


async def open_producer(context: ClientContext, topic: str, options: ProducerOptions) -> Producer:
    """Return a producer that is attached to its topic, or to all its partitions.

    Raises:
        InvalidTopicName: The name is not a topic's.
        PulsarException: The broker refused, or there was no way to it in time.
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
