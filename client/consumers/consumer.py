"""The public class Consumer, and the function that opens one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from client.consumers.dead_letters import DeadLetters
from client.consumers.multi_topics_consumer import MultiTopicsConsumer
from client.consumers.options import ConsumerBatchReceivePolicy
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
from client.messages.message import Message, ValueT
from client.messages.message_id import MessageId
from client.patience import all_of, in_time
from limiter.clock import deadline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from client.consumers.options import ConsumerOptions
    from client.context import ClientContext

_DEFAULT_BATCH = ConsumerBatchReceivePolicy()
_SHARED = (ConsumerType.Shared, ConsumerType.KeyShared)


class Consumer(Receiver[ValueT]):
    """A consumer on a subscription, which receives messages and acknowledges them.

    Example:
        async with await client.subscribe("orders", "billing") as consumer:
            async for message in consumer:
                await consumer.acknowledge(message)

    Args:
        context: State that the client shares with all its producers and consumers.
        topics: The consumers of all topics.
        name: The topic's full name; several names separated by commas.
    """

    def __init__(self, context: ClientContext, topics: MultiTopicsConsumer, name: str) -> None:
        self._options = topics.options
        self._interceptors = ConsumerInterceptors(topics.options.interceptors)
        self._is_intercepted = bool(self._interceptors)
        super().__init__(context, topics, name, topics.options.message_listener)
        if self._is_intercepted:
            topics.on_redelivering = self._redelivering

    # -- receiving ----------------------------------------------------------------------------

    async def receive(self, timeout_millis: int | None = None) -> Message[ValueT]:
        """Return the next message; wait for one if necessary.

        Cancellation loses no message: the next call returns it.

        Args:
            timeout_millis: Longest wait in milliseconds; None waits without limit.

        Raises:
            Timeout: No message arrived in time.
            AlreadyClosed: The consumer is closed, or was closed meanwhile.
            TopicTerminated: The topic is terminated, and fully acknowledged.
            InvalidConfiguration: The consumer has a listener.
        """
        return await self._receive(timeout_millis)

    def _handed_over(self, message: Message[ValueT]) -> Message[ValueT]:
        if self._is_intercepted:
            return self._interceptors.before_consume(self, message)
        return message

    def receive_nowait(self) -> Message[ValueT] | None:
        """Return the next message; return None if no message has arrived.

        Raises:
            PulsarException: The consumer ended: no message will arrive.
            InvalidConfiguration: The consumer has a listener.
        """
        self._check_no_listener()
        message = self._inbox.take()
        if message is None:
            if self._inbox.ended is not None:
                raise self._inbox.ended
            self._inbox.tell_sources()
            return None
        return self._handed_over(message)

    async def batch_receive(self) -> list[Message[ValueT]]:
        """Return a batch limited by the batch receive policy; an empty list after its timeout.

        Raises:
            AlreadyClosed: The consumer is closed, or was closed meanwhile.
            InvalidConfiguration: The consumer has a listener.
        """
        self._check_no_listener()
        policy = self._options.batch_receive_policy or _DEFAULT_BATCH
        most = max(1, self._options.receiver_queue_size)
        messages = await self._inbox.receive_batch(policy, most)
        return [self._handed_over(message) for message in messages]

    def pause_message_listener(self) -> None:
        """Stop calling the message listener and granting permits to the broker."""
        if self._listening is not None:
            self._listening.pause()
        self._topics.pause()

    def resume_message_listener(self) -> None:
        """Resume calling the message listener and granting permits to the broker."""
        self._topics.resume()
        if self._listening is not None:
            self._listening.resume()

    # -- acknowledging ------------------------------------------------------------------------

    async def acknowledge(
        self, message: Message[Any] | MessageId | Sequence[Message[Any] | MessageId]
    ) -> None:
        """Acknowledge a message, or a list of messages, so that the broker never redelivers them.

        Returns without waiting, unless ``ack_receipt_enabled`` is set.

        Raises:
            AlreadyClosed: The consumer is closed.
            InvalidMessage: The id lacks its topic or the size of its batch.
            Timeout: Receipts are enabled, and none arrived within the operation timeout.
            PulsarException: Receipts are enabled, and the broker refused the acknowledgement.
        """
        if not isinstance(message, Sequence):
            receipt = self._acknowledge(message)
            if receipt is not None:
                await self._received((receipt,))
            return
        receipts = dict.fromkeys([self._acknowledge(one) for one in message])
        await self._received([one for one in receipts if one is not None])

    async def _received(self, receipts: Iterable[asyncio.Future[None]]) -> None:
        """Wait for the receipts of acknowledgements.

        The timeout is the same with and without a connection.
        """
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
                f"no receipt in {seconds:g} s: the next connection, if any, acknowledges again"
            ) from None

    def _acknowledge(self, message: Message[Any] | MessageId) -> asyncio.Future[None] | None:
        message_id = _id_of(message)
        receipt = self._topics.topic_of(message_id).handed_out.acknowledge(message_id)
        if self._is_intercepted:
            self._interceptors.on_acknowledge(self, message_id, None)
        return receipt

    async def acknowledge_cumulative(self, message: Message[Any] | MessageId) -> None:
        """Acknowledge a message and all earlier messages of its topic.

        Raises:
            CumulativeAcknowledgementNotAllowedError: The subscription is Shared or Key_Shared.
            The errors of ``acknowledge``.
        """
        if self._options.consumer_type in _SHARED:
            raise CumulativeAcknowledgementNotAllowedError(
                "other consumers share the subscription: acknowledge each message"
            )
        message_id = _id_of(message)
        topic = self._topics.topic_of(message_id)
        receipt = topic.handed_out.acknowledge_cumulative(message_id)
        if self._is_intercepted:
            self._interceptors.on_acknowledge_cumulative(self, message_id, None)
        if receipt is not None:
            await self._received((receipt,))

    async def negative_acknowledge(self, message: Message[Any] | MessageId) -> None:
        """Request the redelivery of a message, and of its whole batch, after the configured delay.

        On a closed consumer a no-op: the broker redelivers unacknowledged messages anyway.
        """
        if self._topics.closed:
            return
        message_id = _id_of(message)
        count = message.redelivery_count() if isinstance(message, Message) else 0
        self._topics.topic_of(message_id).handed_out.refuse(message_id, count)

    async def reconsume_later(
        self, message: Message[Any], delay_ms: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """Acknowledge a message, after sending it to the retry topic for a delayed redelivery.

        After max_redeliver_count rounds the message goes to the dead-letter topic instead.

        Args:
            message: The message.
            delay_ms: The delay in milliseconds.
            properties: Additional properties of the message.

        Raises:
            InvalidConfiguration: retry_enabled is not set.
            PulsarException: The message was neither sent nor acknowledged.
        """
        letters = self._topics.letters
        if letters is None or not self._options.retry_enabled:
            raise InvalidConfiguration("reconsume_later needs retry_enabled=True")
        await letters.send_later(message, delay_ms, properties)
        await self.acknowledge(message)

    def redeliver_unacknowledged_messages(self) -> None:
        """Request the redelivery of all messages that this consumer has not acknowledged."""
        for topic in self._topics.topics.values():
            topic.redeliver_all()

    # -- the subscription ---------------------------------------------------------------------

    async def seek(self, messageid: MessageId | int) -> None:
        """Move the subscription to a message, or to a time in milliseconds since 1970.

        Delivery continues after the message, or with the message if ``start_message_id_inclusive``
        is set. Received messages not yet taken are dropped. Returns once the broker serves the
        consumer again.

        Args:
            messageid: A message id, or a time in milliseconds since 1970.

        Raises:
            InvalidConfiguration: The argument is neither.
            PulsarException: The broker refused, or did not serve the consumer again in time.
        """
        await self._topics.seek(messageid, inclusive=self._options.start_message_id_inclusive)

    async def get_last_message_id(self) -> MessageId:
        """Return the id of the last message in the topic, acknowledged or not.

        Raises:
            OperationNotSupported: The consumer has several topics.
            PulsarException: The broker did not answer.
        """
        topics = tuple(self._topics.topics.values())
        if len(topics) != 1:
            raise OperationNotSupported(
                "several topics have several last messages: see get_last_message_ids"
            )
        return (await topics[0].link.last_message_id())[0]

    async def get_last_message_ids(self) -> list[MessageId]:
        """Return the ids of the last messages of all topics; each id has its topic's name.

        Raises:
            PulsarException: A broker did not answer.
        """
        ends = await all_of(topic.link.last_message_id() for topic in self._topics.topics.values())
        return [last for last, _ in ends]

    async def get_broker_consumer_stats(self) -> dict[str, BrokerConsumerStats]:
        """Return the brokers' statistics of the consumer, keyed by topic.

        Answers are cached for broker_consumer_stats_cache_time_ms.

        Raises:
            PulsarException: A broker did not answer.
        """
        topics = tuple(self._topics.topics.values())
        answers = await all_of(topic.link.cached_stats() for topic in topics)
        return {
            topic.topic: broker_stats(answer) for topic, answer in zip(topics, answers, strict=True)
        }

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close the consumer.

        Args:
            force: Whether to delete the subscription even if it has other consumers.

        Raises:
            PulsarException: The broker refused; the consumer stays open.
        """
        was_open = not self._topics.closed
        await self._topics.unsubscribe(force=force)
        await self.close()
        if was_open:
            self._interceptors.on_close()

    async def close(self) -> None:
        """Send the pending acknowledgements, and close the consumer; further calls do nothing.

        The subscription stays. The broker redelivers unacknowledged messages to the subscription's
        next consumer.
        """
        was_open = not self._topics.closed
        await super().close()
        if was_open:
            self._interceptors.on_close()

    # -- properties ---------------------------------------------------------------------------

    def subscription_name(self) -> str:
        """Return the name of the subscription."""
        return self._topics.subscription.name

    def consumer_name(self) -> str:
        """Return the name of this consumer."""
        return self._topics.subscription.consumer_name

    def is_active(self) -> bool | None:
        """Return True if this is the active consumer of a Failover subscription.

        None before the broker reports, and for other subscription types; with several topics:
        whether any topic has selected the consumer.
        """
        said = [topic.is_active for topic in self._topics.topics.values()]
        return None if all(one is None for one in said) else any(said)

    def _redelivering(self, ids: Sequence[MessageId], timed_out: bool) -> None:
        if timed_out:
            self._interceptors.on_ack_timeout_send(self, ids)
        else:
            self._interceptors.on_negative_acks_send(self, ids)


def _id_of(message: Message[Any] | MessageId) -> MessageId:
    if isinstance(message, Message):
        return message.message_id()
    if isinstance(message, MessageId):
        return message
    raise TypeError(f"a Message or a MessageId is acknowledged, not {message!r:.50}")


async def open_consumer(
    context: ClientContext, topics: str | list[str], subscription: str, options: ConsumerOptions
) -> Consumer[Any]:
    """Return a consumer that is subscribed to topics, including all their partitions.

    Args:
        context: State that the client shares with all its producers and consumers.
        topics: Full names.
        subscription: Name of the subscription.
        options: Consumer options.

    Raises:
        PulsarException: Subscribing failed; no topic is subscribed to.
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
    """Create the consumer of a subscription, without any topics yet; see MultiTopicsConsumer."""
    letters = None
    if options.dead_letter_policy is not None:
        letters = DeadLetters(context, subscription, options)
    name = options.consumer_name or secrets.token_hex(5)
    kept = Subscription(subscription, name)
    return MultiTopicsConsumer(context, kept, options, letters=letters)
