"""Receiver queues: limits on the messages prefetched by the application, counted in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from limiter.client_memory.memory_limit_controller import MemoryLimitController


class CountedBytes:
    """The bytes of a queue's messages, counted from arrival to handover to the application.

    Counting never waits: the bytes have already arrived. A single adjusted reservation covers all
    messages.

    Args:
        memory: The client's memory limit.
        until_acknowledged: Whether to count messages until acknowledgement.

    Attributes:
        memory: The client's memory limit.
        handed_out: Bytes handed to the application and still counted.
    """

    __slots__ = ("_change", "_reservation", "_until_acknowledged", "handed_out", "memory")

    def __init__(self, memory: MemoryLimitController, *, until_acknowledged: bool = False) -> None:
        self.memory = memory
        self._reservation = memory.reserve_prefetched()
        self._change = self._reservation.adjust
        self._until_acknowledged = until_acknowledged
        self.handed_out = 0

    @property
    def size(self) -> int:
        """Currently counted bytes."""
        return self._reservation.size

    def arrived(self, size_bytes: int) -> None:
        """Count arrived bytes."""
        self._change(size_bytes)

    def taken(self, size_bytes: int) -> None:
        """Release bytes of messages handed out or dropped, unless counted until acknowledged."""
        if self._until_acknowledged:
            self.handed_out += size_bytes
        else:
            self._change(-size_bytes)

    def acknowledged(self, size_bytes: int) -> None:
        """Release acknowledged bytes."""
        if self._until_acknowledged:
            self.handed_out -= size_bytes
            self._change(-size_bytes)

    def dropped(self) -> None:
        """Release all bytes not handed out."""
        self._reservation.resize(self.handed_out)

    def close(self) -> None:
        """Release all bytes; idempotent."""
        self._reservation.release()


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
        """Maximum number of in-flight and queued messages now."""
        return self._size

    def attached(self) -> None:
        """Grant permits for a new subscription, at which earlier permits are void."""
        self._counted.dropped()
        self._free = self._size
        self._grant()

    def detached(self) -> None:
        """Grant nothing until attached again, when all permits are granted anew."""

    def arrived(self, messages: int, size_bytes: int) -> None:
        """Count an arrived entry's messages and bytes."""
        self._counted.arrived(size_bytes)

    def taken(self, messages: int, size_bytes: int) -> None:
        """Count messages handed to the application, or dropped: their permits are free."""
        self._counted.taken(size_bytes)
        self._free += messages
        self._grant()

    def acknowledged(self, size_bytes: int) -> None:
        """Release messages acknowledged or redelivered."""
        self._counted.acknowledged(size_bytes)

    def found_nothing(self) -> None:
        """Grant a permit to the waiting application if the queue has size 0."""
        if not self._size:
            self._grant(asked=1)

    def _grant(self, asked: int = 0) -> None:
        """Grant free permits; at size 0, permits for the awaited messages that lack one."""
        free = self._free if self._size else self._consumer.missing + asked
        if free > 0 and free >= self._size // 2 and not self._paused:
            self._free = 0
            self._consumer.grant(free)

    def pause(self) -> None:
        """Grant no permits until ``resume``."""
        self._paused = True

    def resume(self) -> None:
        """Grant permits again."""
        self._paused = False
        self._grant()

    def close(self) -> None:
        """Release all counts, and grant nothing more."""
        self._paused = True
        self._counted.close()


class Granting(Protocol):
    """Callbacks of the consumer for granting permits."""

    @property
    def queued(self) -> int:
        """Number of messages arrived and not taken."""

    @property
    def missing(self) -> int:
        """Number of messages the application awaits, neither queued nor covered by permits."""

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
        """Grant permits for a new subscription, at which earlier permits are void.

        Queued messages were dropped, and are not counted any more.
        """

    def detached(self) -> None:
        """Grant nothing until attached again, because the connection is lost.

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
        """React to an application that waits while the queue is empty."""

    def pause(self) -> None:
        """Grant no permits until ``resume``."""

    def resume(self) -> None:
        """Grant permits again."""

    def close(self) -> None:
        """Release all counts, and grant nothing more."""
