"""A consumer of all topics that match a pattern, including topics created later."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import proto.PulsarApi_pb2 as pb
from client.consumers.consumer import Consumer, topics_consumer
from client.discovery.schedule import DiscoveryOptions
from client.discovery.topic_discovery import TopicDiscovery
from client.exceptions import AlreadyClosed, InvalidConfiguration, TopicNotFound
from client.messages.enums import RegexSubscriptionMode
from client.messages.message import ValueT
from client.patience import all_of, in_time
from limiter.backoff import Backoff
from limiter.tasks import ended

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from client.consumers.multi_topics_consumer import MultiTopicsConsumer
    from client.consumers.options import ConsumerOptions
    from client.context import ClientContext
    from client.discovery.topics_pattern import TopicsPattern
    from client.patience import Patience

    _Step = asyncio.Task[Exception | None]

logger = logging.getLogger(__name__)


AT_ONCE = 50
"""Maximum number of topics subscribed to or left at the same time."""


class KeptTopics:
    """The topics to which a pattern consumer is subscribed.

    It subscribes to the wanted topics and leaves all others, with retries until done. Retries have
    growing delays.

    Args:
        consumer: The multi-topics consumer that subscribes to the topics.
        patience: Waits between the attempts.
        backoff: Delays between attempts.

    Attributes:
        topics: Full names of the subscribed topics.
    """

    def __init__(
        self, consumer: MultiTopicsConsumer, patience: Patience, backoff: Backoff | None = None
    ) -> None:
        self._consumer = consumer
        self._patience = patience
        self._backoff = backoff or Backoff(0.1, 60.0)
        self._wanted: set[str] = set()
        self._waiting: asyncio.Future[None] | None = None
        self._places = asyncio.Semaphore(AT_ONCE)
        self._task: asyncio.Task[None] | None = None
        self._opening = self._closed = False
        self.topics: set[str] = set()

    async def open(self, wanted: set[str]) -> None:
        """Subscribe to the topics of the first listing; stop at the first permanent error.

        Raises:
            PulsarException: Subscribing to a topic failed.
        """
        self._wanted = wanted
        self._opening = True
        try:
            errors = await self._attempt()
        finally:
            self._opening = False
        for error in filter(_is_final, errors):
            raise error
        self.want(self._wanted)

    def want(self, wanted: set[str]) -> None:
        """Replace the set of wanted topics; subscribe to new ones and leave unwanted ones."""
        self._wanted = wanted
        self._wake()
        if self._task is None and wanted != self.topics and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._until_kept())

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _give_up(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)

    async def _until_kept(self) -> None:
        try:
            while self._wanted != self.topics:
                wanted = self._wanted
                errors = await self._attempt()
                if errors:
                    logger.info("of %d topics: %s", len(errors), errors[0])
                    if wanted is self._wanted:
                        self._waiting = asyncio.get_running_loop().create_future()
                        seconds = self._backoff.next()
                        await self._patience.delay(seconds, *errors, waiter=self._waiting)
                else:
                    self._backoff.reset()
        finally:
            self._task = None

    async def _attempt(self) -> list[Exception]:
        """Try once to subscribe to all wanted topics and to leave all others; return the errors.

        Slow topics do not delay topics wanted meanwhile.
        """
        tasks: dict[str, _Step] = {}
        under_way: set[_Step] = set()
        begun: set[str] | None = None
        try:
            while under_way or begun is not self._wanted:
                if begun is not self._wanted:
                    begun = self._wanted
                    self._begin(tasks, under_way)
                if under_way:
                    self._waiting = asyncio.get_running_loop().create_future()
                    await self._waiting
            outcomes = [task.result() for task in tasks.values()]
        except BaseException:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            raise
        return [error for error in outcomes if error is not None]

    def _begin(self, tasks: dict[str, _Step], under_way: set[_Step]) -> None:
        """Start to subscribe to topics and to leave topics.

        Skip topics for which such a task is running or has failed already.
        """

        def ended(task: _Step) -> None:
            under_way.discard(task)
            error = None if task.cancelled() else task.result()
            if self._opening and error is not None and _is_final(error):
                self._give_up(error)
            elif not under_way:
                self._wake()

        for name in sorted(self._wanted ^ self.topics):
            before = tasks.get(name)
            if before is None or (before.done() and before.result() is None):
                step = self._add if name in self._wanted else self._remove
                task = tasks[name] = asyncio.get_running_loop().create_task(self._one(name, step))
                under_way.add(task)
                task.add_done_callback(ended)

    async def _one(
        self, name: str, step: Callable[[str], Coroutine[object, object, None]]
    ) -> Exception | None:
        async with self._places:
            try:
                await step(name)
            except AlreadyClosed as error:
                return None if self._closed else error
            except Exception as error:  # noqa: BLE001 - one topic must not stop the others
                return error
        return None

    async def _add(self, name: str) -> None:
        await self._consumer.add_topic(name)
        self.topics.add(name)

    async def _remove(self, name: str) -> None:
        await self._consumer.remove_topic(name)
        self.topics.discard(name)

    async def close(self) -> None:
        """Stop subscribing to topics and leaving them."""
        self._closed = True
        await ended(self._task)


def _is_final(error: Exception) -> bool:
    """Return True if an error must fail the opening of the consumer.

    A missing topic need not: it may have been deleted after its listing.
    """
    return not isinstance(error, TopicNotFound)


_MODES = {
    RegexSubscriptionMode.PersistentOnly: pb.CommandGetTopicsOfNamespace.PERSISTENT,
    RegexSubscriptionMode.NonPersistentOnly: pb.CommandGetTopicsOfNamespace.NON_PERSISTENT,
    RegexSubscriptionMode.AllTopics: pb.CommandGetTopicsOfNamespace.ALL,
}


class PatternConsumer(Consumer[ValueT]):
    """A consumer of all topics that match a pattern, including topics created later.

    New topics are subscribed to, deleted topics are left; the subscription of a topic no longer
    matching stays.

    Args:
        context: State that the client shares with all its producers and consumers.
        topics: The consumers of all matching topics, none at first.
        pattern: The pattern.
        options: Consumer options, including the discovery schedule.
    """

    def __init__(
        self,
        context: ClientContext,
        topics: MultiTopicsConsumer,
        pattern: TopicsPattern,
        options: ConsumerOptions,
    ) -> None:
        super().__init__(context, topics, pattern.text)
        topics.endless = True
        mode = options.regex_subscription_mode
        self._kept = KeptTopics(topics, context.cluster.patience)
        rules = DiscoveryOptions(
            pattern=pattern.text,
            properties=options.properties or {},
            persistent=mode is RegexSubscriptionMode.PersistentOnly,
            period_seconds=max(1.0, options.pattern_auto_discovery_period),
            operation_timeout_seconds=context.operation_timeout_seconds,
        )
        self.discovery = TopicDiscovery(
            context, pattern, _MODES[mode], rules, options.discovery_schedule, self._kept.want
        )

    async def open(self) -> None:
        """List the matching topics and subscribe to them; there may be none yet.

        Raises:
            PulsarException: Listing, or subscribing to a topic, failed.
        """
        await self._kept.open(await self.discovery.open())
        self.discovery.schedule.subscribed()

    async def close(self) -> None:
        """Send the pending acknowledgements, and close the consumer; further calls do nothing."""
        await all_of([self.discovery.close(), self._kept.close(), super().close()])


async def open_pattern_consumer(
    context: ClientContext, pattern: TopicsPattern, subscription: str, options: ConsumerOptions
) -> PatternConsumer[Any]:
    """Open a consumer that subscribes to all topics matching a pattern.

    Args:
        context: State that the client shares with all its producers and consumers.
        pattern: The pattern.
        subscription: Name of the subscription.
        options: Consumer options.

    Raises:
        InvalidConfiguration: The options exclude a pattern.
        PulsarException: Subscribing failed; no topic is subscribed to.
    """
    if options.retry_enabled:
        raise InvalidConfiguration(
            "retry_enabled needs topics that are named, instead of a pattern"
        )
    # Subscribing must not recreate a topic deleted after its listing.
    options = replace(options, force_topic_creation=False)
    consumer: PatternConsumer[Any] = PatternConsumer(
        context,
        topics_consumer(context, subscription, options),
        pattern,
        options,
    )
    due = context.due()
    try:
        await consumer.open()
    except BaseException:
        await in_time(context.clock, due, consumer.close())
        raise
    return consumer
