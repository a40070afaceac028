"""The public class Reader, and the function that opens one."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

from client.consumers.multi_topics_consumer import MultiTopicsConsumer
from client.consumers.options import ConsumerOptions
from client.consumers.receiver import Receiver
from client.consumers.subscribing import Position, Subscription
from client.exceptions import PulsarException, Timeout
from client.messages.message import ValueT
from client.messages.message_id import MessageId
from limiter.clock import deadline

if TYPE_CHECKING:
    from client.consumers.options import ReaderOptions
    from client.consumers.topic_consumer import TopicConsumer
    from client.context import ClientContext
    from client.messages.message import Message


class Reader(Receiver[ValueT]):
    """A reader of a topic's messages, starting at a given message.

    It reports its progress to the broker.

    Example:
        async with await client.create_reader("orders", MessageId.earliest) as reader:
            while await reader.has_message_available():
                message = await reader.read_next()

    Args:
        context: State that the client shares with all its producers and consumers.
        topics: The topic's consumer, with all partitions.
        name: The topic's full name.
        options: Reader options.
    """

    def __init__(
        self,
        context: ClientContext,
        topics: MultiTopicsConsumer,
        name: str,
        options: ReaderOptions,
    ) -> None:
        self._inclusive = options.start_message_id_inclusive
        super().__init__(context, topics, name, options.reader_listener)

    async def read_next(self, timeout_millis: int | None = None) -> Message[ValueT]:
        """Return the next message; wait for one if necessary.

        Cancellation loses no message: the next call returns it.

        Args:
            timeout_millis: Longest wait in milliseconds; None waits without limit.

        Raises:
            Timeout: No message arrived in time.
            AlreadyClosed: The reader is closed, or was closed meanwhile.
            TopicTerminated: The topic is terminated, and fully read.
            InvalidConfiguration: The reader has a listener.
        """
        return await self._receive(timeout_millis)

    def _handed_over(self, message: Message[ValueT]) -> Message[ValueT]:
        """Acknowledge a message that the application reads, and return the message."""
        if message.batch_index + 1 >= message.entry.batch_size:  # The batch's last, or unbatched.
            message_id = message.message_id()
            self._topics.topic_of(message_id).handed_out.acknowledge_cumulative(message_id)
        return message

    async def has_message_available(self) -> bool:
        """Return True if the topic has messages after the last one read.

        Raises:
            PulsarException: The broker did not answer.
        """
        if self._inbox.queued:
            return True
        loop = asyncio.get_running_loop()
        asking = [loop.create_task(self._has_more(one)) for one in self._topics.topics.values()]
        failure: PulsarException | None = None
        try:
            for answer in asyncio.as_completed(asking):
                try:
                    if await answer:
                        return True
                except PulsarException as error:
                    failure = error
        finally:
            for one in asking:
                one.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        if failure is not None and not self._inbox.queued:
            raise failure
        return self._inbox.queued > 0

    async def _has_more(self, topic: TopicConsumer) -> bool:
        """Return True if a topic's last message lies after the reader's position.

        Before the first message, after a start at the topic's end or at a time, only the broker
        knows the position: compare the acknowledged position then.

        Source: upstream ConsumerImpl::hasMessageAvailableAsync of the C++ client.
        """
        clock, due = self._context.clock, self._context.due()
        progress = topic.incoming.progress
        start, inclusive = MessageId.latest, self._inclusive
        if progress.start is not None:
            start, inclusive = progress.start.message_id, progress.start.inclusive
        last, acknowledged = await topic.link.last_message_id()
        if last.entry_id() < 0 or last.entry <= progress.passed:
            return False
        if progress.last is not None:
            return last > _comparable(progress.taken_id, last)
        if progress.sought_time is not None or start == MessageId.latest:
            if inclusive and progress.sought_time is None:
                try:
                    async with deadline(clock, due - clock.now()):
                        await topic.seek(last, inclusive=True)
                except TimeoutError as error:
                    raise Timeout(f"{topic.topic} was not moved to its last message") from error
                return True
            return acknowledged is not None and acknowledged.entry < last.entry
        start = _comparable(start, last)
        return last >= start if inclusive else last > start

    async def seek(self, messageid: MessageId | int) -> None:
        """Move the reader to a message, or to a time in milliseconds since 1970.

        Reading continues after the message, or with the message if ``start_message_id_inclusive``
        is set.

        Raises:
            PulsarException: The broker refused, or did not serve the reader again in time.
        """
        await self._topics.seek(messageid, inclusive=self._inclusive)


def _comparable(place: MessageId, last: MessageId) -> MessageId:
    """Return a message id in a form that compares with the broker's last message id.

    An unbatched message's id, and an id without a batch index, stand for the whole entry.
    """
    index = place.batch_index() if last.batch_index() >= 0 else -1
    if index < 0 and last.batch_index() >= 0 and place.entry == last.entry:
        index = last.batch_index()
    return MessageId(last.partition(), place.ledger_id(), place.entry_id(), index)


async def open_reader(
    context: ClientContext, topic: str, start_message_id: MessageId, options: ReaderOptions
) -> Reader[Any]:
    """Open a reader of a topic and all its partitions, starting at a message.

    Args:
        context: State that the client shares with all its producers and consumers.
        topic: Full name of the topic.
        start_message_id: Start position.
        options: Reader options.

    Raises:
        PulsarException: Opening failed.
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
    )
    try:
        await topics.add_topic(topic)
    except BaseException:
        await topics.close()
        raise
    return Reader(context, topics, topic, options)
