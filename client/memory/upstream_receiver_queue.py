"""The receiver queue as upstream sizes it: policy "pulsar"."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.memory.counted_bytes import CountedBytes
    from client.memory.receiver_queue import Granting

EXPANSION_THRESHOLD = 0.75
"""The fraction of the limit below which queues grow."""


class UpstreamReceiverQueue:
    """A queue that doubles when it was full and ran empty. See ReceiverQueue for its methods.

    It looks at nothing but itself and the client's usage: the broker is not asked, and sizes of
    messages do not count. What was granted is not taken back: permits below zero absorb what is
    taken next.

    Args:
        consumer: Whose queue it is.
        counted: The bytes of its messages.
        min_size: Where it starts, and the least it shrinks to; at least 1.
        max_size: The most it grows to.
        on_close: Called when it closes.

    Attributes:
        hint: The queue was full when a message came last, and has not grown since.

    Source: upstream ConsumerBase, ConsumerImpl with autoScaledReceiverQueueSizeEnabled.
    """

    def __init__(
        self,
        consumer: Granting,
        counted: CountedBytes,
        min_size: int,
        max_size: int,
        on_close: Callable[[UpstreamReceiverQueue], object],
    ) -> None:
        self._consumer = consumer
        self._memory = counted.memory
        self._counted = counted
        self._on_close = on_close
        self._min_size = min_size
        self._max_size = max_size
        self._size = min_size
        self._queued = 0
        self._available_permits = 0
        self._paused = False
        self.hint = False
        self.growths = self.shrinks = 0

    @property
    def current_size(self) -> int:
        """See ReceiverQueue."""
        return self._size

    def attached(self) -> None:
        """See ReceiverQueue."""
        self._counted.dropped()
        self._queued = 0
        self._available_permits = self._size
        self._grant()

    def detached(self) -> None:
        """See ReceiverQueue; permits that are granted now go nowhere, and come anew."""

    def arrived(self, messages: int, size_bytes: int) -> None:
        """See ReceiverQueue."""
        self._queued += messages
        self._counted.arrived(size_bytes)
        self.hint = self._available_permits + self._queued >= self._size

    def taken(self, messages: int, size_bytes: int) -> None:
        """See ReceiverQueue."""
        self._queued -= messages
        self._available_permits += messages
        self._counted.taken(size_bytes)
        self._grant()

    def acknowledged(self, size_bytes: int) -> None:
        """See ReceiverQueue."""
        self._counted.acknowledged(size_bytes)

    def found_nothing(self) -> None:
        """See ReceiverQueue."""
        if self.hint and self._memory.current_usage_fraction < EXPANSION_THRESHOLD:
            self.hint = False
            self.grow_to(2 * self._size)

    def shrink(self) -> None:
        """Halve the queue: memory is nearly used up."""
        size = max(self._min_size, self._size // 2)
        if size < self._size:
            self.shrinks += 1
            self._resize(size)

    def grow_to(self, size: int) -> None:
        """Grow to ``size`` messages, or to the most there may be."""
        size = min(self._max_size, size)
        if size > self._size:
            self.growths += 1
            self._resize(size)

    def _resize(self, size: int) -> None:
        self._available_permits += size - self._size
        self._size = size
        self._grant()

    def _grant(self) -> None:
        permits = self._available_permits
        if permits > 0 and permits >= self._size // 2 and not self._paused:
            self._available_permits = 0
            self._consumer.grant(permits)

    def pause(self) -> None:
        """See ReceiverQueue."""
        self._paused = True

    def resume(self) -> None:
        """See ReceiverQueue."""
        self._paused = False
        self._grant()

    def close(self) -> None:
        """See ReceiverQueue."""
        self._paused = True
        self._counted.close()
        self._on_close(self)
