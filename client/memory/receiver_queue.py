"""Receiver queues: how many messages a broker may send ahead of what the application takes."""

from __future__ import annotations

from typing import Protocol


class Granting(Protocol):
    """The consumer's part in its receiver queue."""

    @property
    def queued(self) -> int:
        """Messages that arrived and were not taken yet."""

    @property
    def missing(self) -> int:
        """Messages that the application waits for, and that are neither here nor granted."""

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

    growths: int
    """Times that it became larger."""
    shrinks: int
    """And smaller."""

    @property
    def current_size(self) -> int:
        """Messages that may be under way or queued now."""

    def attached(self) -> None:
        """Grant anew: the consumer was subscribed, and no permit of before counts.

        What was queued was dropped, and is not counted any more.
        """

    def detached(self) -> None:
        """Want nothing until it is attached again: the connection is lost.

        What was queued is dropped, and is told by ``taken``.
        """

    def arrived(self, messages: int, size_bytes: int) -> None:
        """Count an entry that has arrived, of so many messages and bytes."""

    def taken(self, messages: int, size_bytes: int) -> None:
        """Count messages that were handed to the application, or dropped: permits come free."""

    def acknowledged(self, size_bytes: int) -> None:
        """Count messages that the application is done with: acknowledged, or sent again.

        Only a queue that counts until then needs it; for others it does nothing.
        """

    def found_nothing(self) -> None:
        """Learn that the application asks for a message and none is there."""

    def pause(self) -> None:
        """Grant nothing until ``resume``."""

    def resume(self) -> None:
        """Grant again."""

    def close(self) -> None:
        """Give back what is counted, and grant nothing more."""
