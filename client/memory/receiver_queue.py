"""Receiver queues: how many messages a broker may send ahead of what the application takes."""

from __future__ import annotations

from typing import Protocol


class Granting(Protocol):
    """The consumer's part in its receiver queue."""

    @property
    def queued(self) -> int:
        """Messages that arrived and were not taken yet."""

    def grant(self, permits: int) -> None:
        """Allow the broker to send so many messages more (FLOW)."""

    async def more_is_pending(self) -> bool:
        """Ask the broker whether it has messages that it may not send yet.

        Exclusive and Failover: the last message id. Others: CONSUMER_STATS with a backlog and no
        permits left.
        """


class ReceiverQueue(Protocol):
    """The permits of one topic's consumer, and the memory its prefetched messages take.

    Its methods are plain functions; the consumer calls them as things happen. What it grants, it
    grants by itself, at once or later.
    """

    @property
    def current_size(self) -> int:
        """Messages that may be under way or queued now."""

    def attached(self) -> None:
        """Grant anew: the consumer was subscribed, and no permit of before counts.

        What was queued was dropped, and is not counted any more.
        """

    def arrived(self, messages: int, size_bytes: int) -> None:
        """Count an entry that has arrived, of so many messages and bytes."""

    def taken(self, messages: int, size_bytes: int) -> None:
        """Count messages that were handed to the application, or dropped: permits come free."""

    def found_nothing(self) -> None:
        """Learn that the application asks for a message and none is there."""

    def pause(self) -> None:
        """Grant nothing until ``resume``."""

    def resume(self) -> None:
        """Grant again."""

    def close(self) -> None:
        """Give back what is counted, and grant nothing more."""


class FixedReceiverQueue:
    """A queue of one size, whatever memory there is: permits come free in halves.

    Args:
        consumer: Whose queue it is.
        size: Messages; 0 grants one for each that the application asks for.

    Source: upstream ConsumerImpl.increaseAvailablePermits.
    """

    def __init__(self, consumer: Granting, size: int) -> None:
        self._consumer = consumer
        self._size = size
        self._free = 0
        self._paused = False

    @property
    def current_size(self) -> int:
        """See ReceiverQueue."""
        return self._size

    def attached(self) -> None:
        """See ReceiverQueue."""
        self._free = self._size
        self._grant()

    def arrived(self, messages: int, size_bytes: int) -> None:
        """See ReceiverQueue."""

    def taken(self, messages: int, size_bytes: int) -> None:
        """See ReceiverQueue."""
        if self._size:
            self._free += messages
            self._grant()

    def found_nothing(self) -> None:
        """See ReceiverQueue; without a queue this is when a message is asked for."""
        if not self._size and not self._paused:
            self._consumer.grant(1)

    def _grant(self) -> None:
        if self._free and self._free >= self._size // 2 and not self._paused:
            free, self._free = self._free, 0
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
