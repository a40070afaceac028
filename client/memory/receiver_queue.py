"""Receiver queues: limits on the messages prefetched by the application."""

from __future__ import annotations

from typing import Protocol


class Granting(Protocol):
    """Callbacks of the consumer."""

    @property
    def queued(self) -> int:
        """Number of messages arrived and not taken."""

    @property
    def missing(self) -> int:
        """Number of awaited messages neither queued nor covered by permits."""

    def grant(self, permits: int) -> None:
        """Grant further permits to the broker (FLOW)."""

    async def more_is_pending(self) -> bool:
        """Tell whether the broker holds messages beyond its permits.

        Exclusive and Failover: by the last message id. Other types: by CONSUMER_STATS with a
        backlog and no permits left.
        """


class ReceiverQueue(Protocol):
    """The permits of a topic's consumer, and the memory of its prefetched messages.

    The consumer calls the plain methods on events; the queue grants permits, immediately or later.
    """

    growths: int
    """Number of size increases."""
    shrinks: int
    """Number of size decreases."""

    @property
    def current_size(self) -> int:
        """Maximum number of in-flight and queued messages now."""

    def attached(self) -> None:
        """Grant anew: after a subscription earlier permits are void.

        Queued messages were dropped, and are not counted any more.
        """

    def detached(self) -> None:
        """Grant nothing until attached again: the connection is lost.

        Queued messages are dropped, and reported by ``taken``.
        """

    def arrived(self, messages: int, size_bytes: int) -> None:
        """Count an arrived entry's messages and bytes."""

    def taken(self, messages: int, size_bytes: int) -> None:
        """Count messages handed to the application, or dropped: their permits are free."""

    def acknowledged(self, size_bytes: int) -> None:
        """Release messages acknowledged or redelivered.

        A no-op for queues not counting until acknowledgement.
        """

    def found_nothing(self) -> None:
        """Handle the application waiting at an empty queue."""

    def pause(self) -> None:
        """Grant nothing until ``resume``."""

    def resume(self) -> None:
        """Grant again."""

    def close(self) -> None:
        """Release all counts, and grant nothing more."""
