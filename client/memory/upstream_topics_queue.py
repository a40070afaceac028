"""The receiver queue of a consumer of several topics as upstream sizes it: policy "pulsar"."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from client.memory.upstream_receiver_queue import EXPANSION_THRESHOLD, UpstreamReceiverQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.memory.counted_bytes import CountedBytes
    from client.memory.receiver_queue import Granting
    from limiter.client_memory.memory_limit_controller import MemoryLimitController


class UpstreamTopicsQueue:
    """A common queue that the queues of several topics are emptied into. See TopicsQueue.

    Each topic has a queue of its own that grows as one topic's does. A topic is parked when the
    common queue is full, or more than half full while others are parked; then its messages stay
    where they are, and their permits are not free. Parked topics go on when it is half empty.

    Args:
        memory: The client's limit.
        make: Makes the queue of one topic that is emptied into this one.
        batch_receive_messages: How many messages ``batch_receive`` waits for; 0 if never.
        max_size: The most it grows to.
        on_close: Called when it closes.

    Attributes:
        hint: The queue was full when a message came last, and has not grown since.

    Source: upstream MultiTopicsConsumerImpl.
    """

    def __init__(
        self,
        memory: MemoryLimitController,
        make: Callable[[UpstreamTopicsQueue, Granting, int], EmptiedQueue],
        batch_receive_messages: int,
        max_size: int,
        on_close: Callable[[UpstreamTopicsQueue], object],
    ) -> None:
        self._memory = memory
        self._make = make
        self._batch_receive_messages = batch_receive_messages
        self._max_size = max_size
        self._on_close = on_close
        self._topics: dict[EmptiedQueue, None] = {}
        self._parked: dict[EmptiedQueue, None] = {}
        self._size = self.min_size
        self._queued = 0
        self.hint = False
        self.growths = self.shrinks = 0

    @property
    def current_size(self) -> int:
        """See TopicsQueue."""
        return self._size

    @property
    def min_size(self) -> int:
        """The least it shrinks to: a message of each topic, and what ``batch_receive`` needs."""
        return max(min(1, self._max_size), self._batch_receive_messages, len(self._topics))

    def open(self, consumer: Granting, max_size: int) -> EmptiedQueue:
        """See TopicsQueue."""
        topic = self._make(self, consumer, max_size)
        self._topics[topic] = None
        self._size = max(self._size, self.min_size)
        return topic

    def close(self) -> None:
        """See TopicsQueue."""
        self._on_close(self)

    def shrink(self) -> None:
        """Halve the queue: memory is nearly used up."""
        size = max(self.min_size, self._size // 2)
        if size < self._size:
            self._size = size
            self.shrinks += 1

    # -- for the queues of its topics ---------------------------------------------------------

    def remove(self, topic: EmptiedQueue) -> None:
        """Leave a topic out."""
        self._topics.pop(topic, None)
        self._parked.pop(topic, None)

    def fill_from(self, topic: EmptiedQueue) -> None:
        """Take over the messages of a topic, until it has to be parked."""
        while topic.kept and topic not in self._parked:
            self._queued += topic.hand_over()
            self.hint = self._queued >= self._size
            if self.hint or (self._parked and self._queued > self._size // 2):
                self._parked[topic] = None
        if topic not in self._parked:
            topic.emptied()

    def left(self, messages: int) -> None:
        """Count messages that left the common queue, and go on with parked topics."""
        self._queued -= messages
        self._unpark()

    def _unpark(self) -> None:
        while self._parked and self._queued <= self._size // 2:
            topic = next(iter(self._parked))
            del self._parked[topic]
            self.fill_from(topic)

    def found_nothing(self) -> None:
        """Grow if the queue was full."""
        if self.hint and self._memory.current_usage_fraction < EXPANSION_THRESHOLD:
            self.hint = False
            size = min(self._max_size, 2 * self._size)
            if size > self._size:
                self._size = size
                self.growths += 1
                self._unpark()


class EmptiedQueue(UpstreamReceiverQueue):
    """One topic's queue that is emptied into a common one. See ReceiverQueue for its methods.

    Args:
        common: The queue that takes its messages over.
        consumer: Whose queue it is.
        counted: The bytes of its messages, in both queues.
        max_size: The most it grows to.
        on_close: Called when it closes.
    """

    def __init__(
        self,
        common: UpstreamTopicsQueue,
        consumer: Granting,
        counted: CountedBytes,
        max_size: int,
        on_close: Callable[[UpstreamReceiverQueue], object],
    ) -> None:
        super().__init__(consumer, counted, min(1, max_size), max_size, on_close)
        self._common = common
        self._handed_over = 0
        self.kept: deque[int] = deque()

    def attached(self) -> None:
        """See ReceiverQueue."""
        self._drop()
        super().attached()

    def _drop(self) -> None:
        self.kept.clear()
        handed_over, self._handed_over = self._handed_over, 0
        self._common.left(handed_over)

    def arrived(self, messages: int, size_bytes: int) -> None:
        """See ReceiverQueue."""
        super().arrived(messages, size_bytes)
        self.kept.append(messages)
        self._common.fill_from(self)

    def hand_over(self) -> int:
        """Return the messages of an entry that goes to the common queue: permits come free."""
        messages = self.kept.popleft()
        self._handed_over += messages
        super().taken(messages, 0)
        return messages

    def emptied(self) -> None:
        """Learn that the common queue has room and finds nothing here."""
        super().found_nothing()

    def taken(self, messages: int, size_bytes: int) -> None:
        """See ReceiverQueue."""
        self._counted.taken(size_bytes)
        self._handed_over -= messages
        self._common.left(messages)

    def found_nothing(self) -> None:
        """See ReceiverQueue."""
        self._common.found_nothing()

    def close(self) -> None:
        """See ReceiverQueue."""
        self._common.remove(self)
        self._drop()
        super().close()
