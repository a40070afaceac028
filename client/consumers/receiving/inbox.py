"""The messages of a consumer's topics, and those who wait for one."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol

from limiter.clock import deadline

if TYPE_CHECKING:
    from collections.abc import Iterable

    from client.consumers.policies import ConsumerBatchReceivePolicy
    from client.exceptions import PulsarException
    from client.messages.message import Message
    from limiter.clock import Clock


class Source(Protocol):
    """One topic's messages that arrived and were not taken."""

    def take(self) -> Message | None:
        """Return the first message, which is here no more; None if there is none."""

    def found_nothing(self) -> None:
        """Learn that the program asks for a message and none is there."""

    @property
    def more_may_come(self) -> bool:
        """True if the broker may send a message now."""


class Inbox:
    """Merges the messages of topics, one of each in turn, and wakes those who wait.

    A message leaves its topic's queue in the turn of the loop in which the program gets it. So who
    is cancelled while it waits takes no message with it.

    Args:
        clock: Where time comes from.

    Attributes:
        queued: Messages in the queues of all topics.
        queued_bytes: Their bytes.
        ended: Why no message will come any more.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: deque[Source] = deque()
        self._sources: dict[Source, bool] = {}  # Whether it is among those that are ready.
        self._untold: dict[Source, None] = {}  # Who may not know that nothing is there.
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
        """Callers that wait for a message."""
        return len(self._waiters) + len(self._batch_waiters)

    def add(self, source: Source, *, always_told: bool = False) -> None:
        """Merge one more topic's messages.

        Args:
            source: The topic's.
            always_told: Whether it wants to know each time that nothing is there, as one that has
                no queue: others know it until something comes.
        """
        self._sources[source] = False
        self._untold[source] = None
        if always_told:
            self._always_told[source] = None

    def tell_again(self, source: Source) -> None:
        """Learn that a topic can do something again when it is told that nothing is there."""
        self._untold[source] = None

    def remove(self, source: Source) -> None:
        """Leave a topic out; its queue is empty."""
        if self._sources.pop(source, False):
            self._ready.remove(source)
        self._untold.pop(source, None)
        self._always_told.pop(source, None)
        if self._latest is source:
            self._latest = None

    def arrived(self, source: Source, messages: int, size_bytes: int) -> None:
        """Count messages of a topic that arrived, and wake as many who wait."""
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
        """Count messages that left their queue, taken or dropped."""
        self.queued -= messages
        self.queued_bytes -= size_bytes

    def end(self, reason: PulsarException | None) -> None:
        """Raise an error in all who wait, and will: no message comes any more.

        Args:
            reason: Why; None: messages come again.
        """
        if self._stopped and reason is None:
            return
        self.ended = reason
        if reason is not None:
            _wake(self._waiters)
            _wake(self._batch_waiters)

    def stop(self, reason: PulsarException) -> None:
        """Hand over no message any more, not even one that arrived; for good."""
        self._stopped = True
        self.end(reason)

    def take(self) -> Message | None:
        """Return a message of the topic whose turn it is; None if there is none."""
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

    async def receive(self) -> Message:
        """Return the next message, when there is one.

        Raises:
            PulsarException: There will be none.
        """
        while (message := self.take()) is None:
            await self._something()
        return message

    async def _something(self) -> None:
        """Wait until something arrived. Who is woken and then cancelled wakes another."""
        if self.ended is not None:
            raise self.ended
        self.tell_sources()
        if self._ready:
            return  # It came at once.
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
        """Tell the topics that the program asks for a message, and none is there.

        There may be thousands: only those are told that may not know, and the one to which
        something came last, which alone asks for more.
        """
        untold, self._untold = self._untold, dict(self._always_told)
        if self._latest is not None:
            untold[self._latest] = None
        for source in untold:
            source.found_nothing()

    async def receive_batch(self, policy: ConsumerBatchReceivePolicy, most: int) -> list[Message]:
        """Return as many messages as the policy says, or those that came until its time was up.

        Args:
            policy: When there are enough.
            most: Messages that may be queued at all: waiting for more would be in vain.

        Raises:
            PulsarException: There will be none.
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
                    # Of what is queued nothing may be wanted.
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
        # Who waits without end takes what there is when a topic's queue is full: others may have
        # nothing to send.
        return (
            policy.timeout_ms <= 0
            and self.queued > 0
            and not all(source.more_may_come for source in self._ready)
        )

    def _take_batch(self, number: int, most_bytes: int) -> list[Message]:
        batch: list[Message] = []
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
