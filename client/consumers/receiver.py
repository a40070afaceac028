"""The base class of consumers and readers, and the loop that calls message listeners."""

from __future__ import annotations

import asyncio
import inspect
import logging
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Self

from client.consumers.statistics import ConsumerStatistics, topic_statistics
from client.exceptions import (
    AlreadyClosed,
    InvalidConfiguration,
    PulsarException,
    Timeout,
    TopicTerminated,
)
from client.messages.message import ValueT
from limiter.clock import deadline
from limiter.tasks import ended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from client.consumers.multi_topics_consumer import MultiTopicsConsumer
    from client.context import ClientContext
    from client.messages.message import Message

logger = logging.getLogger(__name__)


_MOST_AT_ONCE = 16
"""Maximum number of listener calls per event-loop iteration, for listeners without an await."""


class Listening:
    """A loop that calls the listener with each message in order, until the consumer ends.

    An exception of the listener is logged; after the ack timeout, the message is redelivered.

    Args:
        listener: Function called with the owner and a message; an awaitable result is awaited.
        owner: The consumer or reader.
        next_message: Coroutine function that returns the next message.
    """

    def __init__(
        self,
        listener: Callable[..., object],
        owner: object,
        next_message: Callable[[], Awaitable[Message[Any]]],
    ) -> None:
        self._listener = listener
        self._owner = owner
        self._next_message = next_message
        self._allowed = asyncio.Event()
        self._allowed.set()
        self._task = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        for number in count(1):
            if not number % _MOST_AT_ONCE:
                await asyncio.sleep(0)
            await self._allowed.wait()
            try:
                message = await self._next_message()
            except PulsarException as error:
                logger.info("a listener gets no more messages: %s", error)
                return
            await self._allowed.wait()
            try:
                result = self._listener(self._owner, message)
                if inspect.isawaitable(result):
                    await result
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and self._task.cancelling():
                    raise
                logger.exception("a message listener failed on %s", message.message_id())

    def pause(self) -> None:
        """Stop calling the listener until ``resume``."""
        self._allowed.clear()

    def resume(self) -> None:
        """Start calling the listener again."""
        self._allowed.set()

    async def close(self) -> None:
        """Cancel the loop and the listener's running call, unless that call requested the close."""
        await ended(self._task)


class Receiver(Generic[ValueT]):
    """The base of Consumer and Reader, which passes messages to the application or listener.

    Args:
        context: State that the client shares with all its producers and consumers.
        topics: The consumers of all topics.
        name: The topic's full name; several names separated by commas.
        listener: Function called with each message, which replaces the receive methods.
    """

    def __init__(
        self,
        context: ClientContext,
        topics: MultiTopicsConsumer,
        name: str,
        listener: Callable[..., object] | None,
    ) -> None:
        self._context = context
        self._topics = topics
        self._inbox = topics.inbox
        self._name = name
        self._listening: Listening | None = None
        if listener is not None:
            topics.endless = True  # The topic may go on after a seek.
            topics.end_changed()
            self._listening = Listening(listener, self, self._next)

    def __repr__(self) -> str:
        kept = self._topics.subscription
        return f"<{type(self).__name__} {kept.consumer_name} of {kept.name} on {self._name:.200}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message[ValueT]:
        """Return the next message; end the iteration after close or a terminated topic."""
        try:
            return await self._receive()
        except (AlreadyClosed, TopicTerminated):
            raise StopAsyncIteration from None

    async def _receive(self, timeout_millis: int | None = None) -> Message[ValueT]:
        self._check_no_listener()
        if timeout_millis is None:
            return await self._next()
        message = self._inbox.take()
        if message is not None:
            return self._handed_over(message)
        try:
            async with deadline(self._context.clock, timeout_millis / 1_000):
                return await self._next()
        except TimeoutError:
            raise Timeout(f"no message came in {timeout_millis} ms") from None

    async def _next(self) -> Message[ValueT]:
        message = self._inbox.take()
        if message is None:
            message = await self._inbox.receive()
        return self._handed_over(message)

    def _handed_over(self, message: Message[ValueT]) -> Message[ValueT]:
        """Process a message that the application receives (in subclasses), and return it."""
        return message

    def _check_no_listener(self) -> None:
        if self._listening is not None:
            raise InvalidConfiguration("messages go to the listener: receive calls are refused")

    def stop(self) -> None:
        """Stop delivering messages to the application; earlier ones can still be acknowledged.

        ``async for`` ends, waiters get AlreadyClosed, and the listener is not called again. After
        ``close``, the broker redelivers the messages that the application has not received. This is
        a plain function, for ``loop.add_signal_handler``.
        """
        self._topics.pause()
        self._inbox.stop(AlreadyClosed(f"the consumer of {self._name:.200} was stopped"))

    async def close(self) -> None:
        """Close the consumer or reader; further calls do nothing."""
        self._context.parts.discard(self)
        try:
            await self._topics.close()
        finally:
            if self._listening is not None:
                await self._listening.close()

    def topic(self) -> str:
        """Return the full name of the topic; several names are separated by commas."""
        return self._name

    def is_connected(self) -> bool:
        """Return True if all topics have a connection to their brokers."""
        return not self._topics.closed and all(
            topic.link.cnx is not None for topic in self._topics.topics.values()
        )

    def has_reached_end_of_topic(self) -> bool:
        """Return True if every topic is terminated and all its messages are acknowledged."""
        topics = self._topics.topics
        return bool(topics) and all(topic.end_of_topic for topic in topics.values())

    def statistics(self) -> ConsumerStatistics:
        """Return the current statistics of the consumer or reader."""
        subscription, letters = self._topics.subscription, self._topics.letters
        return ConsumerStatistics(
            subscription=subscription.name,
            consumer_name=subscription.consumer_name,
            topics=tuple(topic_statistics(topic) for topic in self._topics.topics.values()),
            waiting=self._inbox.waiting,
            dead_letters=letters.sent if letters is not None else 0,
        )
