"""Senders of messages to the dead-letter and retry topics of a subscription."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from client.exceptions import (
    AlreadyClosed,
    InvalidConfiguration,
    ProducerFenced,
    TopicTerminated,
)
from client.messages.errors import BrokenEntryError
from client.patience import all_of, in_time
from client.producers.options import ProducerOptions
from client.producers.producer import open_producer
from limiter.tasks import ended
from proto.names import without_partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from client.consumers.options import ConsumerDeadLetterPolicy, ConsumerOptions
    from client.consumers.topic_consumer import TopicConsumer
    from client.context import ClientContext
    from client.messages.entry import Entry
    from client.messages.message import Message
    from client.messages.message_id import Place
    from client.producers.producer import Producer

logger = logging.getLogger(__name__)

DEAD_LETTER_SUFFIX, RETRY_SUFFIX = "-DLQ", "-RETRY"
REAL_TOPIC, REAL_SUBSCRIPTION = "REAL_TOPIC", "REAL_SUBSCRIPTION"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
OLD_ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_IDY_TIME"
"""Misspelled property name that upstream's clients still read."""
RECONSUME_TIMES, DELAY_TIME = "RECONSUMETIMES", "DELAY_TIME"


def letter_topic(topic: str, subscription: str, suffix: str) -> str:
    """Return the default name of a topic's dead-letter or retry topic."""
    return f"{topic}-{subscription}{suffix}"


class _Letter(NamedTuple):
    """An entry that waits to be sent to the dead-letter topic.

    Attributes:
        topic: The consumer of the topic that the entry comes from.
        entry: The entry.
        messages, size_bytes: Messages and bytes counted for the entry.
        losses: Number of the topic's lost connections when the entry arrived. A further loss
            releases all counts.
    """

    topic: TopicConsumer
    entry: Entry
    messages: int
    size_bytes: int
    losses: int

    @property
    def is_here(self) -> bool:
        """True until the connection that delivered the entry is lost; then it is redelivered."""
        return self.losses == self.topic.incoming.losses

    @property
    def key(self) -> tuple[TopicConsumer, Place, int]:
        """A key that stays the same if the entry is redelivered on the same connection."""
        head = self.entry.head
        return self.topic, (head.ledger_id, head.entry_id), self.losses

    def freed(self) -> None:
        """Release the entry's permits and bytes, unless the lost connection has released them."""
        if self.is_here:
            self.topic.incoming.count_freed(self.messages, self.size_bytes)


class DeadLetters:
    """The producers for a consumer's dead-letter and retry topics, opened on demand.

    Args:
        context: State that the client shares with all its producers and consumers.
        subscription: Name of the subscription.
        options: Consumer options with a dead-letter policy.
    """

    def __init__(self, context: ClientContext, subscription: str, options: ConsumerOptions) -> None:
        if options.dead_letter_policy is None:
            raise InvalidConfiguration("dead letters need a dead_letter_policy")
        self._context = context
        self._subscription = subscription
        self._retries = options.retry_enabled
        self._policy: ConsumerDeadLetterPolicy = options.dead_letter_policy
        self._producers: dict[str, asyncio.Task[Producer]] = {}
        self._line: deque[_Letter] = deque()
        self._keys: set[tuple[TopicConsumer, Place, int]] = set()  # Keys of the queued letters.
        self._task: asyncio.Task[None] | None = None
        self._finishing = self._closed = False
        self.sent = 0

    @property
    def waiting(self) -> int:
        """Number of entries that wait to be sent to the dead-letter topic."""
        return len(self._line)

    def takes(self, topic: TopicConsumer, entry: Entry, messages: int, size_bytes: int) -> bool:
        """Queue an entry for the dead-letter topic if it was redelivered too often.

        Return False for any other entry. The entry's permits and bytes are released after it is
        sent; the limit of the receiver queue therefore limits dead letters, too.
        """
        if self._closed or entry.head.redelivery_count <= self._policy.max_redeliver_count:
            return False
        letter = _Letter(topic, entry, messages, size_bytes, topic.incoming.losses)
        if letter.key in self._keys:
            letter.freed()
            return True
        self._keys.add(letter.key)
        self._line.append(letter)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())
        return True

    async def _work(self) -> None:
        try:
            while self._line and not self._finishing:
                letter = self._line[0]
                try:
                    if letter.is_here:
                        await self._send_entry(letter.topic, letter.entry)
                finally:
                    self._line.popleft()
                    self._keys.discard(letter.key)
                    letter.freed()
        finally:
            self._task = None

    async def _send_entry(self, topic: TopicConsumer, entry: Entry) -> None:
        place = entry.head.ledger_id, entry.head.entry_id
        try:
            while entry.left:
                for message in topic.incoming.read(entry):
                    await self.send_dead(message)
                    if topic.link.ended is None:  # Otherwise the broker redelivers the message.
                        topic.handed_out.acknowledge(message.message_id())
        except BrokenEntryError as error:
            topic.incoming.broken(place, error)
        except Exception as error:  # noqa: BLE001 - an unsendable letter must not block the rest
            logger.warning(
                "%s: a dead letter was not sent, and is tried again: %s", topic.topic, error
            )
            topic.handed_out.redelivery.refuse(place, entry.head.redelivery_count)

    async def send_dead(self, message: Message[Any]) -> None:
        """Send a copy of a message to the dead-letter topic.

        Like in the official clients, each partition has its own dead-letter topic, unless retries
        are enabled.

        Raises:
            PulsarException: The message was not sent.
        """
        origin = message.topic_name()
        if self._retries:
            origin = without_partition(message.properties().get(REAL_TOPIC, origin))
        name = self._policy.dead_letter_topic or letter_topic(
            origin, self._subscription, DEAD_LETTER_SUFFIX
        )
        subscription = self._policy.initial_subscription_name
        await self._send(name, subscription, message, self._properties(message))
        self.sent += 1

    async def send_later(
        self, message: Message[Any], delay_ms: int, properties: Mapping[str, str] | None
    ) -> None:
        """Send a message to the retry topic, or after too many retries to the dead-letter topic.

        Raises:
            PulsarException: The message was not sent.
        """
        told = message.properties().get(RECONSUME_TIMES, "")
        times = int(told) + 1 if told.isdecimal() else 1
        if times > self._policy.max_redeliver_count:
            await self.send_dead(message)
            return
        own = self._properties(message) | dict(properties or {})
        own[RECONSUME_TIMES], own[DELAY_TIME] = str(times), str(delay_ms)
        await self._send(self.retry_topic(own[REAL_TOPIC]), None, message, own, delay_ms)

    def retry_topic(self, topic: str) -> str:
        """Return the name of a topic's retry topic, which all its partitions share."""
        return self._policy.retry_letter_topic or letter_topic(
            without_partition(topic), self._subscription, RETRY_SUFFIX
        )

    def _properties(self, message: Message[Any]) -> dict[str, str]:
        message_id = message.message_id()
        place = f"{message_id.ledger_id()}:{message_id.entry_id()}:{message_id.partition()}"
        if message_id.batch_index() >= 0:
            place += f":{message_id.batch_index()}"
        return {
            REAL_TOPIC: message.topic_name(),
            ORIGIN_MESSAGE_ID: place,
            OLD_ORIGIN_MESSAGE_ID: place,
            REAL_SUBSCRIPTION: self._subscription,
        } | message.properties()

    async def _send(
        self,
        topic: str,
        subscription: str | None,
        message: Message[Any],
        properties: dict[str, str],
        delay_ms: int = 0,
    ) -> None:
        opening = self._opening(topic, subscription)
        await asyncio.wait([opening])
        if opening.cancelled():
            raise _closed()
        producer = opening.result()
        event_time = message.event_timestamp()
        try:
            await producer.send(
                None if message.has_null_value() else message.data(),
                properties=properties,
                partition_key=message.partition_key() or None,
                ordering_key=message.ordering_key() or None,
                event_timestamp=event_time or None,
                deliver_after=timedelta(milliseconds=delay_ms) if delay_ms else None,
            )
        except (AlreadyClosed, ProducerFenced, TopicTerminated):
            if self._producers.get(topic) is opening:  # Ended: the next message opens anew.
                del self._producers[topic]
                await producer.close()
            raise

    def _opening(self, topic: str, subscription: str | None) -> asyncio.Task[Producer]:
        """Return the task that opens a topic's producer, shared by all callers."""
        if self._closed:
            raise _closed()
        opening = self._producers.get(topic)
        if opening is None or (opening.done() and opening.exception() is not None):
            # Letters are sent singly, and an original may exceed the broker's message limit.
            options = ProducerOptions(
                initial_subscription_name=subscription,
                max_pending_messages=1_000,
                batching_enabled=False,
                chunking_enabled=True,
            )
            opening = asyncio.get_running_loop().create_task(
                open_producer(self._context, topic, options)
            )
            self._producers[topic] = opening
        return opening

    async def finish(self) -> None:
        """Wait until the current dead letter is sent, and send no further ones.

        The wait takes at most half of the close timeout.
        """
        self._finishing = True
        if self._task is not None:
            due = self._context.due() - self._context.operation_timeout_seconds / 2
            await in_time(self._context.clock, due, asyncio.wait([self._task]))

    async def close(self) -> None:
        """Stop sending dead letters; the broker redelivers the queued ones to the subscription."""
        due = self._context.due()
        try:
            await self.finish()
        finally:
            self._closed = True
            await self._leave(due)

    async def _leave(self, due: float) -> None:
        parts = [ended(self._task), *(_close(opening) for opening in self._producers.values())]
        try:
            await in_time(self._context.clock, due, all_of(parts))
        finally:
            line, self._line = self._line, deque()
            for letter in line:
                letter.freed()


def _closed() -> AlreadyClosed:
    return AlreadyClosed(
        "the consumer was closed: the message was not sent on, and will be redelivered"
    )


async def _close(opening: asyncio.Task[Producer]) -> None:
    try:
        await ended(opening)
    finally:
        if opening.done() and not opening.cancelled() and opening.exception() is None:
            await opening.result().close()
