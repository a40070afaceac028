"""A receiver queue of one size, whatever memory there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.memory.counted_bytes import CountedBytes
    from client.memory.receiver_queue import Granting


class FixedReceiverQueue:
    """A queue of one size: permits come free in halves. See ReceiverQueue for its methods.

    Args:
        consumer: Whose queue it is.
        counted: The bytes of its messages.
        size: Messages; 0 grants one for each that the application asks for.

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
        """See ReceiverQueue; permits that are granted now go nowhere, and come anew."""

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
        """See ReceiverQueue; without a queue this is when a message is asked for."""
        if not self._size:
            self._grant(asked=1)

    def _grant(self, asked: int = 0) -> None:
        """Grant what is free; without a queue what is missing, and what is asked for now."""
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
