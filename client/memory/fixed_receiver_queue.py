"""A receiver queue of fixed size, independent of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.memory.counted_bytes import CountedBytes
    from client.memory.receiver_queue import Granting


class FixedReceiverQueue:
    """A queue of fixed size, granting permits in halves; see ReceiverQueue for its methods.

    Args:
        consumer: The queue's owner.
        counted: The bytes of the consumer's messages.
        size: Most messages; 0 grants a permit per requested message.

    Source: upstream ConsumerImpl.increaseAvailablePermits.
    """

    growths = shrinks = 0

    def __init__(self, consumer: Granting, counted: CountedBytes, size: int) -> None:
        self._consumer = consumer
        self._size = size
        self._counted = counted
        self._free = 0
        self._paused = False

    @property
    def current_size(self) -> int:
        """See ReceiverQueue."""
        return self._size

    def attached(self) -> None:
        """See ReceiverQueue."""
        self._counted.dropped()
        self._free = self._size
        self._grant()

    def detached(self) -> None:
        """See ReceiverQueue; permits granted while detached are void, and granted anew."""

    def arrived(self, messages: int, size_bytes: int) -> None:
        """See ReceiverQueue."""
        self._counted.arrived(size_bytes)

    def taken(self, messages: int, size_bytes: int) -> None:
        """See ReceiverQueue."""
        self._counted.taken(size_bytes)
        self._free += messages
        self._grant()

    def acknowledged(self, size_bytes: int) -> None:
        """See ReceiverQueue."""
        self._counted.acknowledged(size_bytes)

    def found_nothing(self) -> None:
        """See ReceiverQueue; at size 0, a message was requested."""
        if not self._size:
            self._grant(asked=1)

    def _grant(self, asked: int = 0) -> None:
        """Grant free permits; at size 0 the missing permits, and newly requested."""
        free = self._free if self._size else self._consumer.missing + asked
        if free > 0 and free >= self._size // 2 and not self._paused:
            self._free = 0
            self._consumer.grant(free)

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
