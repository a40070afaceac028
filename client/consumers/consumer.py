"""A consumer as programs have it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from client.consumers.all_of import all_of
from client.consumers.dead_letters import DeadLetters
from client.consumers.multi_topics_consumer import MultiTopicsConsumer
from client.consumers.policies import ConsumerBatchReceivePolicy
from client.consumers.receiver import Receiver
from client.consumers.statistics import BrokerConsumerStats, broker_stats
from client.consumers.subscribing import Subscription
from client.exceptions import (
    CumulativeAcknowledgementNotAllowedError,
    InvalidConfiguration,
    OperationNotSupported,
    PulsarException,
    Timeout,
)
from client.interceptors import ConsumerInterceptors
from client.messages.enums import ConsumerType
from client.messages.message import Message
from client.messages.message_id import MessageId
from client.patience import in_time
from limiter.clock import deadline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from client.consumers.options import ConsumerOptions
    from client.context import ClientContext

_DEFAULT_BATCH = ConsumerBatchReceivePolicy()
_SHARED = (ConsumerType.Shared, ConsumerType.KeyShared)


class Consumer(Receiver):
    """Receives the messages of a subscription, and acknowledges them.

    Example:
        async with await client.subscribe("orders", "billing") as consumer:
            async for message in consumer:
                await consumer.acknowledge(message)

    Args:
        context: The client's.
        topics: What it is subscribed to.
        name: The topic that it was opened with; of several, their names with commas between.
    """

    def __init__(self, context: ClientContext, topics: MultiTopicsConsumer, name: str) -> None:
        self._options = topics.options
        self._interceptors = ConsumerInterceptors(topics.options.interceptors)
        self._is_intercepted = bool(self._interceptors)
        super().__init__(context, topics, name, topics.options.message_listener)
        if self._is_intercepted:
            topics.on_redelivering = self._redelivering

    # -- receiving ----------------------------------------------------------------------------

    async def receive(self, timeout_millis: int | None = None) -> Message:
        """Return the next message.

        Cancelled, it leaves the message to the next call.

        Args:
            timeout_millis: How long to wait for one; None waits without end.

        Raises:
            Timeout: None came in time.
            AlreadyClosed: The consumer is, or was meanwhile, closed.
            TopicTerminated: The topic was terminated, and all of it acknowledged.
            InvalidConfiguration: There is a listener.
        """
        return await self._receive(timeout_millis)

    def _handed_over(self, message: Message) -> Message:
        if self._is_intercepted:
            return self._interceptors.before_consume(self, message)
        return message

    def receive_nowait(self) -> Message | None:
        """Return the next message; None if none is there.

        Raises:
            PulsarException: There will be none any more.
            InvalidConfiguration: There is a listener.
        """
        self._check_no_listener()
        message = self._inbox.take()
        if message is None:
            if self._inbox.ended is not None:
                raise self._inbox.ended
            self._inbox.tell_sources()
            return None
        return self._handed_over(message)

    async def batch_receive(self) -> list[Message]:
        """Return several messages, as the batch receive policy says; none if its time is up.

        Raises:
            AlreadyClosed: The consumer is, or was meanwhile, closed.
            InvalidConfiguration: There is a listener.
        """
        self._check_no_listener()
        policy = self._options.batch_receive_policy or _DEFAULT_BATCH
        most = max(1, self._options.receiver_queue_size)
        messages = await self._inbox.receive_batch(policy, most)
        return [self._handed_over(message) for message in messages]

    def pause_message_listener(self) -> None:
        """Call the listener no more, and let the broker send no more, until it is resumed."""
        if self._listening is not None:
            self._listening.pause()
        self._topics.pause()

    def resume_message_listener(self) -> None:
        """Let messages come again."""
        self._topics.resume()
        if self._listening is not None:
            self._listening.resume()

    # -- acknowledging ------------------------------------------------------------------------

    async def acknowledge(
        self, message: Message | MessageId | Sequence[Message | MessageId]
    ) -> None:
        """Acknowledge a message, or a list of them: they do not come again.

        Unless the options ask for a receipt, it waits for nothing.

        Raises:
            AlreadyClosed: The consumer is closed.
            InvalidMessage: The id does not say which topic or batch it is of.
            Timeout: With a receipt: none came in the operation timeout.
            PulsarException: With a receipt: the broker has not acknowledged it.
        """
        if not isinstance(message, Sequence):
            receipt = self._acknowledge(message)
            if receipt is not None:
                await self._received((receipt,))
            return
        receipts = dict.fromkeys([self._acknowledge(one) for one in message])
        await self._received([one for one in receipts if one is not None])

    async def _received(self, receipts: Iterable[asyncio.Future[None]]) -> None:
        """Wait for receipts: without a connection they are waited for as long as with one."""
        gathered = self._options.ack_group_time_ms / 1_000
        seconds = self._context.operation_timeout_seconds + gathered
        try:
            async with deadline(self._context.clock, seconds):
                for receipt in receipts:
                    await asyncio.shield(receipt)
        except PulsarException:
            raise
        except TimeoutError:
            raise Timeout(
                f"no receipt in {seconds:g} s: the next connection acknowledges it, if there is one"
            ) from None

    def _acknowledge(self, message: Message | MessageId) -> asyncio.Future[None] | None:
        message_id = _id_of(message)
        receipt = self._topics.topic_of(message_id).handed_out.acknowledge(message_id)
        if self._is_intercepted:
            self._interceptors.on_acknowledge(self, message_id)
        return receipt

    async def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """Acknowledge a message and all before it on its topic.

        Raises:
            CumulativeAcknowledgementNotAllowedError: The subscription is Shared or Key_Shared.
            The errors of ``acknowledge``.
        """
        if self._options.consumer_type in _SHARED:
            raise CumulativeAcknowledgementNotAllowedError(
                "others share the subscription: acknowledge each message"
            )
        message_id = _id_of(message)
        topic = self._topics.topic_of(message_id)
        receipt = topic.handed_out.acknowledge_cumulative(message_id)
        if self._is_intercepted:
            self._interceptors.on_acknowledge_cumulative(self, message_id)
        if receipt is not None:
            await self._received((receipt,))

    async def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Have a message sent again when its delay is over; with it, all of its batch.

        A closed consumer has nothing left to do: what it did not acknowledge comes again.
        """
        if self._topics.closed:
            return
        message_id = _id_of(message)
        count = message.redelivery_count() if isinstance(message, Message) else 0
        self._topics.topic_of(message_id).handed_out.refuse(message_id, count)

    async def reconsume_later(
        self, message: Message, delay_ms: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """Send a message to the retry topic, from where it comes after a delay; acknowledge it.

        After max_redeliver_count times it goes to the dead-letter topic.

        Args:
            message: The message.
            delay_ms: The delay.
            properties: What to add to its properties.

        Raises:
            InvalidConfiguration: retry_enabled is not set.
            PulsarException: It was not sent, and is not acknowledged.
        """
        letters = self._topics.letters
        if letters is None or not self._options.retry_enabled:
            raise InvalidConfiguration("reconsume_later needs retry_enabled=True")
        await letters.send_later(message, delay_ms, properties)
        await self.acknowledge(message)

    def redeliver_unacknowledged_messages(self) -> None:
        """Have everything sent again that was not acknowledged."""
        for topic in self._topics.topics.values():
            topic.redeliver_all()

    # -- the subscription ---------------------------------------------------------------------

    async def seek(self, messageid: MessageId | int) -> None:
        """Go on behind a message, or at a time in milliseconds since 1970.

        With ``start_message_id_inclusive`` the message itself comes, too. Everything that was
        received and not taken is dropped. When it returns, the broker serves this consumer again.

        Raises:
            InvalidConfiguration: It is neither.
            PulsarException: The broker refused, or was not there again in time.
        """
        await self._topics.seek(messageid, inclusive=self._options.start_message_id_inclusive)

    async def get_last_message_id(self) -> MessageId:
        """Return the id of the topic's last message, acknowledged or not.

        Raises:
            OperationNotSupported: There are several topics.
            PulsarException: The broker did not say.
        """
        topics = tuple(self._topics.topics.values())
        if len(topics) != 1:
            raise OperationNotSupported(
                "several topics have several last messages: see get_last_message_ids"
            )
        return (await topics[0].link.last_message_id())[0]

    async def get_last_message_ids(self) -> list[MessageId]:
        """Return the ids of the last messages of all topics; each names its topic.

        Raises:
            PulsarException: A broker did not say.
        """
        ends = await all_of(topic.link.last_message_id() for topic in self._topics.topics.values())
        return [last for last, _ in ends]

    async def get_broker_consumer_stats(self) -> dict[str, BrokerConsumerStats]:
        """Return what the brokers say of this consumer, by topic.

        An answer is as old as broker_consumer_stats_cache_time_ms at most.

        Raises:
            PulsarException: A broker did not say.
        """
        topics = tuple(self._topics.topics.values())
        answers = await all_of(topic.link.cached_stats() for topic in topics)
        return {
            topic.topic: broker_stats(answer) for topic, answer in zip(topics, answers, strict=True)
        }

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close.

        Args:
            force: Even if it has other consumers.

        Raises:
            PulsarException: The broker refused; the consumer stays open.
        """
        was_open = not self._topics.closed
        await self._topics.unsubscribe(force=force)
        await self.close()
        if was_open:
            self._interceptors.on_close()

    async def close(self) -> None:
        """Send the acknowledgements that wait, and leave; once more is harmless.

        The subscription stays. What was received and not acknowledged comes again to the next
        consumer.
        """
        was_open = not self._topics.closed
        await super().close()
        if was_open:
            self._interceptors.on_close()

    # -- what it is ---------------------------------------------------------------------------

    def subscription_name(self) -> str:
        """Return the subscription's name."""
        return self._topics.subscription.name

    def consumer_name(self) -> str:
        """Return the consumer's name."""
        return self._topics.subscription.consumer_name

    def is_active(self) -> bool | None:
        """Tell whether a Failover subscription sends to this consumer.

        None until the broker says, and of other types; of several topics: whether one sends.
        """
        said = [topic.is_active for topic in self._topics.topics.values()]
        return None if all(one is None for one in said) else any(said)

    def _redelivering(self, ids: Sequence[MessageId], timed_out: bool) -> None:
        if timed_out:
            self._interceptors.on_ack_timeout_send(self, ids)
        else:
            self._interceptors.on_negative_acks_send(self, ids)


def _id_of(message: Message | MessageId) -> MessageId:
    if isinstance(message, Message):
        return message.message_id()
    if isinstance(message, MessageId):
        return message
    raise TypeError(f"a Message or a MessageId is acknowledged, not {message!r:.50}")


async def open_consumer(
    context: ClientContext, topics: str | list[str], subscription: str, options: ConsumerOptions
) -> Consumer:
    """Subscribe to a topic or several, with all of their partitions.

    Args:
        context: The client's.
        topics: Full names.
        subscription: Name.
        options: Everything else.

    Raises:
        PulsarException: It failed; nothing is subscribed to.
    """
    names = [topics] if isinstance(topics, str) else list(dict.fromkeys(topics))
    if not names:
        raise InvalidConfiguration("there is no topic to subscribe to: name one at least")
    consumers = topics_consumer(context, subscription, options)
    letters = consumers.letters
    added = list(names)
    if letters is not None and options.retry_enabled:
        added += [letters.retry_topic(name) for name in names]
    due = context.due()
    try:
        await all_of(consumers.add_topic(name) for name in dict.fromkeys(added))
    except BaseException:
        await in_time(context.clock, due, consumers.close())
        raise
    return Consumer(context, consumers, ",".join(names))


def topics_consumer(
    context: ClientContext, subscription: str, options: ConsumerOptions
) -> MultiTopicsConsumer:
    """Return the consumer of a subscription, without a topic yet; see MultiTopicsConsumer."""
    letters = None
    if options.dead_letter_policy is not None:
        letters = DeadLetters(context, subscription, options)
    name = options.consumer_name or secrets.token_hex(5)
    kept = Subscription(subscription, name)
    return MultiTopicsConsumer(context, kept, options, letters=letters)
