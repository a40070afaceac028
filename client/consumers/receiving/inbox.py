"""The merged queue of messages from a consumer's topics, and the callers waiting for them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from limiter.clock import deadline

if TYPE_CHECKING:
    from collections.abc import Iterable

    from client.consumers.options import ConsumerBatchReceivePolicy
    from client.exceptions import PulsarException
    from client.messages.message import Message
    from limiter.clock import Clock


class Source(Protocol):
    """Interface (typing Protocol) of the queue of one topic's received messages."""

    def take(self) -> Message[Any] | None:
        """Remove and return the first message of the queue; return None if it is empty."""

    def found_nothing(self) -> None:
        """Request messages, because the application waits and the queue is empty."""

    @property
    def more_may_come(self) -> bool:
        """True if the broker has permits left to send further messages."""


class Inbox:
    """The message queues of all topics, read round-robin, and the callers waiting for a message.

    A message leaves its topic's queue in the same event-loop iteration in which the program gets
    it; a cancelled waiter therefore loses no message.

    Args:
        clock: The source of time.

    Attributes:
        queued: Number of messages in the queues of all topics.
        queued_bytes: Number of bytes in the queues of all topics.
        ended: The error that says why no further message will arrive, or None.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: deque[Source] = deque()
        self._sources: dict[Source, bool] = {}  # Value: whether queued in ``_ready``.
        self._untold: dict[Source, None] = {}  # Sources not yet notified of an empty inbox.
        self._always_told: dict[Source, None] = {}
        self._latest: Source | None = None
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._batch_waiters: dict[asyncio.Future[None], None] = {}
        self.queued = 0
        self.queued_bytes = 0
        self.ended: PulsarException | None = None
        self._stopped = False

    @property
    def waiting(self) -> int:
        """Number of callers waiting for a message."""
        return len(self._waiters) + len(self._batch_waiters)

    def add(self, source: Source, *, always_told: bool = False) -> None:
        """Add the queue of a topic.

        Args:
            source: The topic's queue.
            always_told: True for a topic without a receiver queue, which is notified whenever a
                caller finds all queues empty. Other topics are then notified only once until their
                next message.
        """
        self._sources[source] = False
        self._untold[source] = None
        if always_told:
            self._always_told[source] = None

    def tell_again(self, source: Source) -> None:
        """Notify a topic's queue again when the application next waits for a message."""
        self._untold[source] = None

    def remove(self, source: Source) -> None:
        """Remove the queue of a topic, which must be empty."""
        if self._sources.pop(source, False):
            self._ready.remove(source)
        self._untold.pop(source, None)
        self._always_told.pop(source, None)
        if self._latest is source:
            self._latest = None

    def arrived(self, source: Source, messages: int, size_bytes: int) -> None:
        """Count messages that a topic has received, and wake as many waiting callers."""
        self.queued += messages
        self.queued_bytes += size_bytes
        self._latest = source
        self._untold[source] = None
        if not self._sources[source]:
            self._sources[source] = True
            self._ready.append(source)
        if self._waiters:
            _wake(self._waiters, messages)
        if self._batch_waiters:
            _wake(self._batch_waiters)

    def left(self, messages: int, size_bytes: int) -> None:
        """Stop counting messages that were removed from a topic's queue."""
        self.queued -= messages
        self.queued_bytes -= size_bytes

    def end(self, reason: PulsarException | None) -> None:
        """Raise an error in current and future callers that wait for a message.

        Args:
            reason: The error to raise; None if messages can arrive again.
        """
        if self._stopped and reason is None:
            return
        self.ended = reason
        if reason is not None:
            _wake(self._waiters)
            _wake(self._batch_waiters)

    def stop(self, reason: PulsarException) -> None:
        """Stop returning messages for good, including those already received."""
        self._stopped = True
        self.end(reason)

    def take(self) -> Message[Any] | None:
        """Remove and return a message, round-robin over topics; None if all queues are empty."""
        if self._stopped:
            return None
        ready = self._ready
        while ready:
            source = ready[0]
            message = source.take()
            if message is None:
                self._sources[ready.popleft()] = False
                continue
            if len(ready) > 1:
                ready.rotate(-1)
            return message
        return None

    async def receive(self) -> Message[Any]:
        """Return the next message, waiting for one if necessary.

        Raises:
            PulsarException: No message will arrive.
        """
        while (message := self.take()) is None:
            await self._something()
        return message

    async def _something(self) -> None:
        """Wait until a message has arrived.

        A caller that is cancelled after being woken wakes the next one instead.
        """
        if self.ended is not None:
            raise self.ended
        self.tell_sources()
        if self._ready:
            return  # A source delivered immediately.
        waiters = self._waiters
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters[waiter] = None
        try:
            await waiter
        except BaseException:
            del waiters[waiter]
            if waiter.done() and not waiter.cancelled() and self._ready:
                _wake(waiters, 1)
            raise
        del waiters[waiter]

    def tell_sources(self) -> None:
        """Notify the topics' queues that the application waits for a message.

        With thousands of topics, notify only the topics not notified since their last arrival, and
        the topic of the latest arrival.
        """
        untold, self._untold = self._untold, dict(self._always_told)
        if self._latest is not None:
            untold[self._latest] = None
        for source in untold:
            source.found_nothing()

    async def receive_batch(
        self, policy: ConsumerBatchReceivePolicy, most: int
    ) -> list[Message[Any]]:
        """Return a full batch of messages, or at the policy's timeout those that have arrived.

        Args:
            policy: Limits of the batch.
            most: Maximum number of messages that are ever queued, so that waiting for more would
                not end.

        Raises:
            PulsarException: No message will arrive.
        """
        number = policy.max_num_message if policy.max_num_message > 0 else most
        number = max(1, min(number, most))
        seconds = policy.timeout_ms / 1_000 if policy.timeout_ms > 0 else None
        if self._enough(number, policy) and (
            batch := self._take_batch(number, policy.max_num_bytes)
        ):
            return batch
        try:
            async with deadline(self._clock, seconds):
                while True:
                    await self._more(number, policy)
                    # All queued messages may be unwanted.
                    if batch := self._take_batch(number, policy.max_num_bytes):
                        return batch
        except TimeoutError:
            return self._take_batch(number, policy.max_num_bytes)

    async def _more(self, number: int, policy: ConsumerBatchReceivePolicy) -> None:
        if self._stopped and self.ended is not None:
            raise self.ended
        while not self._enough(number, policy):
            if self.ended is not None:
                if not self.queued:
                    raise self.ended
                return
            self.tell_sources()
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._batch_waiters[waiter] = None
            try:
                await waiter
            finally:
                del self._batch_waiters[waiter]

    def _enough(self, number: int, policy: ConsumerBatchReceivePolicy) -> bool:
        if self.queued >= number or 0 < policy.max_num_bytes <= self.queued_bytes:
            return True
        # Without a timeout, a full topic queue ends the wait: the other topics may have no
        # messages.
        return (
            policy.timeout_ms <= 0
            and self.queued > 0
            and not all(source.more_may_come for source in self._ready)
        )

    def _take_batch(self, number: int, most_bytes: int) -> list[Message[Any]]:
        batch: list[Message[Any]] = []
        size_bytes = 0
        while len(batch) < number and (message := self.take()) is not None:
            batch.append(message)
            size_bytes += message.size_bytes
            if 0 < most_bytes <= size_bytes:
                break
        return batch


def _wake(waiters: Iterable[asyncio.Future[None]], count: int | None = None) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
            if count is not None:
                count -= 1
                if count <= 0:
                    return
