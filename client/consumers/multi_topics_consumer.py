"""The consumers of several topics or partitions, whose messages share one queue."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from client.consumers.receiving.inbox import Inbox
from client.consumers.topic_consumer import TopicConsumer
from client.exceptions import (
    AlreadyClosed,
    InvalidConfiguration,
    InvalidMessage,
    PulsarException,
    TopicTerminated,
)
from client.memory.receiver_queues import QueueOptions, ReceiverQueuePolicy
from client.messages.message_id import MessageId
from client.patience import all_of, in_time
from limiter.clock import clock_sleep
from limiter.tasks import ended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from client.consumers.dead_letters import DeadLetters
    from client.consumers.options import ConsumerOptions
    from client.consumers.subscribing import Position, Subscription
    from client.context import ClientContext
    from client.messages.entry import Entry
    from client.messages.message_id import Place

logger = logging.getLogger(__name__)


class MultiTopicsConsumer:
    """A consumer of several topics and all their partitions, with their messages merged.

    Args:
        context: State that the client shares with all its producers and consumers.
        subscription: The subscription, common to all topics.
        options: Consumer options.
        start: Start position of a reader's (non-durable) subscription.
        letters: Sender to the dead-letter topic, for messages that were redelivered too often.

    Attributes:
        inbox: The merged queue of messages from all topics.
        topics: Single-topic consumers, keyed by the full name of their topic or partition.
        letters: As given.
        on_redelivering: Function called with the ids of messages about to be redelivered.
        closed: Whether the consumer is closed or being closed.
        endless: Whether receive calls keep waiting after all topics were terminated.
    """

    def __init__(
        self,
        context: ClientContext,
        subscription: Subscription,
        options: ConsumerOptions,
        start: Position | None = None,
        letters: DeadLetters | None = None,
    ) -> None:
        self._context = context
        self.subscription = subscription
        self.options = options
        self._start = start
        self.letters = letters
        self.inbox = Inbox(context.clock)
        self.topics: dict[str, TopicConsumer] = {}
        self._partitions: dict[str, int] = {}
        self._growing: asyncio.Task[None] | None = None
        self._paused = False
        self.closed = self.endless = False
        self._left = asyncio.Event()
        self.on_redelivering: Callable[[Sequence[MessageId], bool], None] | None = None
        self._open_queue = context.receiver_queues.opening(_queue_options(options))

    # -- topics -------------------------------------------------------------------------------

    async def add_topic(self, name: str) -> None:
        """Subscribe to a topic with all its partitions; do nothing if already subscribed.

        Args:
            name: Full name of the topic.

        Raises:
            AlreadyClosed: The consumer was closed.
            PulsarException: Subscribing failed; nothing of the topic is subscribed to.
        """
        if name in self._partitions:
            return
        self._check_open()
        self._partitions[name] = 0
        due = self._context.due()
        try:
            count = await self._context.partitions(
                name, auto_create=self.options.force_topic_creation
            )
            await self._add_partitions(name, range(count), due)
        except BaseException:
            self._partitions.pop(name, None)
            raise
        if count and self._growing is None and self.options.auto_update_partitions_seconds > 0:
            self._growing = asyncio.get_running_loop().create_task(self._watch_partitions())

    async def _add_partitions(self, name: str, indexes: range, due: float) -> None:
        """Subscribe to partitions of a topic, or to an unpartitioned topic; give up at ``due``."""
        known, count = indexes.start, indexes.stop
        if count and self._start is not None and self._start.in_topic:
            raise InvalidConfiguration(
                f"{name} has {count} partitions: begin at MessageId.earliest or latest, and seek"
                " to a time"
            )
        names = [f"{name}-partition-{index}" for index in indexes] or [name]
        added = [self._topic_consumer(one, count) for one in names]
        try:
            await all_of(topic.open(due) for topic in added)
            self._check_wanted(name, known)
        except BaseException:
            await in_time(self._context.clock, due, all_of(topic.close() for topic in added))
            raise
        self._partitions[name] = count
        self.topics.update(zip(names, added, strict=True))
        self.end_changed()
        if self._paused:
            for topic in added:
                topic.incoming.queue.pause()

    def _check_wanted(self, name: str, known: int) -> None:
        if self.closed or self._partitions.get(name) != known:
            raise AlreadyClosed(f"the consumer of {name} was closed")

    def _topic_consumer(self, name: str, partitions: int) -> TopicConsumer:
        options = self.options
        share = options.max_total_receiver_queue_size_across_partitions
        size = min(options.receiver_queue_size, max(1, share // max(1, partitions)))
        if size < options.receiver_queue_size:
            options = replace(options, receiver_queue_size=size)
        return TopicConsumer(
            self._context,
            name,
            self.subscription,
            options,
            self.inbox,
            self,
            self._open_queue,
            self._start,
        )

    async def _watch_partitions(self) -> None:
        """Look up added partitions periodically, and subscribe to them."""
        while True:
            await clock_sleep(self._context.clock, self.options.auto_update_partitions_seconds)
            for name, known in list(self._partitions.items()):
                if known:
                    try:
                        await self._grow(name, known)
                    except Exception as error:  # noqa: BLE001 - the next lookup may succeed
                        logger.info("%s: its partitions were not looked up: %s", name, error)

    async def _grow(self, name: str, known: int) -> None:
        count = await self._context.cluster.partitions(name, auto_create=False)
        if count > known and self._partitions.get(name) == known:
            await self._add_partitions(name, range(known, count), self._context.due())

    async def remove_topic(self, name: str) -> None:
        """Stop consuming a topic with all its partitions; its subscription is not deleted.

        Queued messages are dropped: the broker redelivers them to the subscription's next consumer.

        Args:
            name: Full name of the topic.
        """
        count = self._partitions.pop(name, None)
        if count is None:
            return
        names = [f"{name}-partition-{index}" for index in range(count)] or [name]
        left = [self.topics.pop(one) for one in names if one in self.topics]
        self.end_changed()
        await all_of(topic.close(is_gone=True) for topic in left)

    def topic_of(self, message_id: MessageId) -> TopicConsumer:
        """Return the single-topic consumer that a message id belongs to.

        Raises:
            InvalidMessage: No topic of the consumer matches.
        """
        topic = self.topics.get(message_id.topic_name)
        if topic is None:
            if len(self.topics) != 1 or message_id.topic_name:
                where = message_id.topic_name or "an id that names no topic"
                raise InvalidMessage(f"{where}: this consumer has no such topic")
            topic = next(iter(self.topics.values()))
        return topic

    # -- calls of the topics' consumers -------------------------------------------------------

    def dead_letter(self, topic: TopicConsumer, entry: Entry, messages: int, size: int) -> bool:
        """Queue an entry as a dead letter if it was redelivered too often.

        Return False if the entry should be delivered instead.
        """
        return self.letters is not None and self.letters.takes(topic, entry, messages, size)

    async def letters_sent(self) -> None:
        """Wait, if the consumer is closing, until the current dead letter is sent."""
        if self.closed and self.letters is not None:
            await self.letters.finish()

    def redelivering(self, topic: str, entries: Sequence[Place], *, timed_out: bool) -> None:
        """Call ``on_redelivering`` with the entries of a topic that will be redelivered."""
        if self.on_redelivering is not None:
            ids = [MessageId(-1, *place, topic_name=topic) for place in entries]
            self.on_redelivering(ids, timed_out)

    def end_changed(self) -> None:
        """Raise an error in waiting receive calls once no topic can deliver a further message."""
        if self.closed:
            return
        topics = self.topics.values()
        reason: PulsarException | None = None
        if topics and all(topic.end_of_topic or topic.link.ended for topic in topics):
            reason = next((topic.link.ended for topic in topics if topic.link.ended), None)
            if reason is None and not self.endless:
                reason = TopicTerminated("the topic is terminated: no message will follow")
        self.inbox.end(reason)

    # -- all topics ---------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop granting the brokers permits for further messages."""
        self._paused = True
        for topic in self.topics.values():
            topic.incoming.queue.pause()

    def resume(self) -> None:
        """Grant the brokers permits for further messages again."""
        self._paused = False
        for topic in self.topics.values():
            topic.incoming.queue.resume()

    async def seek(self, target: MessageId | int, *, inclusive: bool) -> None:
        """Move the subscription to a message of one topic, or in all topics to a time or end.

        Raises:
            InvalidConfiguration: The target is invalid.
            The errors of ``TopicConsumer.seek`` and ``topic_of``.
        """
        wanted: object = target
        if not isinstance(wanted, MessageId) and not (isinstance(wanted, int) and wanted >= 0):
            raise InvalidConfiguration(
                f"seek takes a MessageId or a time in ms since 1970, not {target!r:.50}"
            )
        ends = (MessageId.earliest, MessageId.latest)
        if isinstance(target, MessageId) and target not in ends:
            await self.topic_of(target).seek(target, inclusive=inclusive)
            return
        await all_of(topic.seek(target, inclusive=inclusive) for topic in self.topics.values())

    async def unsubscribe(self, *, force: bool) -> None:
        """Delete the subscription in all topics, and close the consumer.

        Raises:
            PulsarException: A broker refused; its topic stays subscribed, for a retry.
        """
        self._check_open()
        due = self._context.due()
        left = [topic for topic in self.topics.values() if topic.link.ended is None]
        try:
            await all_of(topic.unsubscribe(force=force) for topic in left)
        finally:
            self.end_changed()
        await in_time(self._context.clock, due, self.close())

    def _check_open(self) -> None:
        if self.closed:
            raise AlreadyClosed("the consumer is closed")

    async def close(self) -> None:
        """Close the consumers of all topics; concurrent calls wait for the first one."""
        if self.closed:
            await self._left.wait()
            return
        self.closed = True
        self.inbox.end(AlreadyClosed("the consumer was closed"))
        growing, self._growing = self._growing, None
        self._partitions.clear()
        parts = [ended(growing), *(topic.close() for topic in self.topics.values())]
        if self.letters is not None:
            parts.append(self.letters.close())
        try:
            await all_of(parts)
        finally:
            self._left.set()


def _queue_options(options: ConsumerOptions) -> QueueOptions:
    policy = options.batch_receive_policy
    return QueueOptions(
        ReceiverQueuePolicy(options.receiver_queue_policy),
        options.receiver_queue_size,
        max(0, policy.max_num_message) if policy is not None else 0,
        options.memory_until_acknowledged,
    )
