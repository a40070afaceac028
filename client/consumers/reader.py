"""A reader as programs have it: it goes through a topic from a message on."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Self

from client.consumers.multi_topics_consumer import MultiTopicsConsumer
from client.consumers.options import ConsumerOptions
from client.consumers.receiving.listening import Listening
from client.consumers.receiving.position import Position
from client.consumers.statistics import ConsumerStatistics, topic_statistics
from client.consumers.subscribing import Subscription
from client.exceptions import (
    AlreadyClosed,
    InvalidConfiguration,
    Timeout,
    TopicTerminated,
)
from client.messages.message_id import MessageId
from limiter.clock import deadline

if TYPE_CHECKING:
    from client.consumers.options import ReaderOptions
    from client.consumers.topic_consumer import TopicConsumer
    from client.context import ClientContext
    from client.messages.message import Message


class Reader:
    """Reads a topic from a message on, and tells the broker how far it is.

    Example:
        async with await client.create_reader("orders", MessageId.earliest) as reader:
            while await reader.has_message_available():
                message = await reader.read_next()

    Args:
        context: The client's.
        topics: The topic, with all of its partitions.
        name: The topic's full name.
        options: The program's choices.
    """

    def __init__(
        self,
        context: ClientContext,
        topics: MultiTopicsConsumer,
        name: str,
        options: ReaderOptions,
    ) -> None:
        self._context = context
        self._topics = topics
        self._inbox = topics.inbox
        self._name = name
        self._inclusive = options.start_message_id_inclusive
        self._listening: Listening | None = None
        if options.reader_listener is not None:
            self._listening = Listening(options.reader_listener, self, self._next)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """Return the next message; the loop ends with the reader, or with a terminated topic."""
        try:
            return await self.read_next()
        except (AlreadyClosed, TopicTerminated):
            raise StopAsyncIteration from None

    async def read_next(self, timeout_millis: int | None = None) -> Message:
        """Return the next message. Cancelled, it leaves the message to the next call.

        Args:
            timeout_millis: How long to wait for one; None waits without end.

        Raises:
            Timeout: None came in time.
            AlreadyClosed: The reader is, or was meanwhile, closed.
            TopicTerminated: The topic was terminated, and all of it read.
            InvalidConfiguration: There is a listener.
        """
        if self._listening is not None:
            raise InvalidConfiguration("messages go to reader_listener: nothing else gets them")
        if timeout_millis is None:
            return await self._next()
        message = self._inbox.take()
        if message is not None:
            return self._read(message)
        try:
            async with deadline(self._context.clock, timeout_millis / 1_000):
                return await self._next()
        except TimeoutError:
            raise Timeout(f"no message came in {timeout_millis} ms") from None

    async def _next(self) -> Message:
        message = self._inbox.take()
        if message is None:
            message = await self._inbox.receive()
        return self._read(message)

    def _read(self, message: Message) -> Message:
        """Tell the broker of a message that is read, and return it."""
        if message.batch_index + 1 >= message.entry.batch_size:  # Or in no batch.
            message_id = message.message_id()
            self._topics.topic_of(message_id).acknowledge_cumulative(message_id)
        return message

    async def has_message_available(self) -> bool:
        """Tell whether there is a message behind the one that was read last.

        Raises:
            PulsarException: The broker did not say.
        """
        if self._inbox.queued:
            return True
        for topic in tuple(self._topics.topics.values()):
            if await self._has_more(topic):
                return True
        return self._inbox.queued > 0

    async def _has_more(self, topic: TopicConsumer) -> bool:
        """Ask the broker how far the topic goes.

        Before the first message at the end of a topic, or at a time that was sought, the place is
        known to the broker alone: what is acknowledged is compared with it.

        Source: upstream ConsumerImpl::hasMessageAvailableAsync of the C++ client.
        """
        start = topic.position.message_id if topic.position is not None else MessageId.latest
        last, acknowledged = await topic.requests.last_message_id()
        if last.entry_id() < 0:
            return False
        if not topic.has_taken and (topic.sought_time or start == MessageId.latest):
            if self._inclusive and not topic.sought_time:
                await topic.seek(last, inclusive=True)
                return True
            return acknowledged is not None and acknowledged.entry < last.entry
        if topic.has_taken:
            return last > _comparable(topic.taken_id, last)
        start = _comparable(start, last)
        return last >= start if self._inclusive else last > start

    async def seek(self, messageid: MessageId | int) -> None:
        """Go on behind a message, or at a time in milliseconds since 1970.

        With ``start_message_id_inclusive`` the message itself comes, too.

        Raises:
            PulsarException: The broker refused, or was not there again in time.
        """
        await self._topics.seek(messageid, inclusive=self._inclusive)

    async def close(self) -> None:
        """Read no more; once more is harmless."""
        self._context.parts.discard(self)
        try:
            await self._topics.close()
        finally:
            if self._listening is not None:
                await self._listening.close()

    def topic(self) -> str:
        """Return the topic's full name."""
        return self._name

    def is_connected(self) -> bool:
        """Tell whether connections serve the topic, with all of its partitions."""
        return not self._topics.closed and all(
            topic.is_attached for topic in self._topics.topics.values()
        )

    def has_reached_end_of_topic(self) -> bool:
        """Tell whether the topic was terminated, and all of it read."""
        topics = self._topics.topics
        return bool(topics) and all(topic.end_of_topic for topic in topics.values())

    def statistics(self) -> ConsumerStatistics:
        """Return the figures of this moment."""
        subscription = self._topics.subscription
        return ConsumerStatistics(
            subscription=subscription.name,
            consumer_name=subscription.consumer_name,
            topics=tuple(topic_statistics(topic) for topic in self._topics.topics.values()),
            waiting=self._inbox.waiting,
            dead_letters=0,
        )


def _comparable(place: MessageId, last: MessageId) -> MessageId:
    """Return a place as the broker tells the last message's: it names no partition.

    Of a message that is in no batch, and of one that a program names without an index, the whole
    entry is meant.
    """
    index = place.batch_index() if last.batch_index() >= 0 else -1
    if index < 0 and last.batch_index() >= 0 and place.entry == last.entry:
        index = last.batch_index()
    return MessageId(last.partition(), place.ledger_id(), place.entry_id(), index)


async def open_reader(
    context: ClientContext, topic: str, start_message_id: MessageId, options: ReaderOptions
) -> Reader:
    """Read a topic, with all of its partitions, from a message on.

    Args:
        context: The client's.
        topic: Full name.
        start_message_id: Where it begins.
        options: Everything else.

    Raises:
        PulsarException: It failed.
    """
    name = options.subscription_name or f"reader-{secrets.token_hex(5)}"
    if options.subscription_role_prefix:
        name = f"{options.subscription_role_prefix}-{name}"
    topics = MultiTopicsConsumer(
        context,
        Subscription(name, options.reader_name or secrets.token_hex(5), durable=False),
        ConsumerOptions(
            schema=options.schema,
            receiver_queue_size=options.receiver_queue_size,
            is_read_compacted=options.is_read_compacted,
            receiver_queue_policy=options.receiver_queue_policy,
            auto_update_partitions_seconds=options.auto_update_partitions_seconds,
            start_message_id_inclusive=options.start_message_id_inclusive,
            crypto_failure_action=options.crypto_failure_action,
        ),
        Position(start_message_id, options.start_message_id_inclusive),
        alone=True,
    )
    try:
        await topics.add_topic(topic)
    except BaseException:
        await topics.close()
        raise
    return Reader(context, topics, topic, options)
