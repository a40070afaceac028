"""Receiver queues, which limit the messages that a consumer receives in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from limiter.client_memory.memory_limit_controller import MemoryLimitController


class CountedBytes:
    """The bytes of a queue's messages that count as memory until the application gets them.

    Counting never waits: the bytes have already arrived. A single adjusted reservation covers all
    messages.

    Args:
        memory: The client's memory limit.
        until_acknowledged: Whether messages count as memory until they are acknowledged.

    Attributes:
        memory: The client's memory limit.
        handed_out: Bytes of messages that the application has received and that still count.
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
        """Number of bytes that count as memory now."""
        return self._reservation.size

    def arrived(self, size_bytes: int) -> None:
        """Start counting the bytes of a received entry."""
        self._change(size_bytes)

    def taken(self, size_bytes: int) -> None:
        """Stop counting the bytes of messages removed from the queue.

        With ``until_acknowledged``, these bytes continue to count.
        """
        if self._until_acknowledged:
            self.handed_out += size_bytes
        else:
            self._change(-size_bytes)

    def acknowledged(self, size_bytes: int) -> None:
        """Stop counting the bytes of acknowledged messages, if they still count."""
        if self._until_acknowledged:
            self.handed_out -= size_bytes
            self._change(-size_bytes)

    def dropped(self) -> None:
        """Stop counting all bytes except those that the application has received."""
        self._reservation.resize(self.handed_out)

    def close(self) -> None:
        """Stop counting all bytes; further calls do nothing."""
        self._reservation.release()


class FixedReceiverQueue:
    """A receiver queue of fixed size, which grants permits once half of it is free.

    ReceiverQueue describes its methods.

    Args:
        consumer: The consumer that owns the queue.
        counted: The bytes of the consumer's messages.
        size: Maximum number of messages; 0 grants one permit for each message that is waited for.

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
        """Current limit on messages queued in the client or on their way to it."""
        return self._size

    def attached(self) -> None:
        """Grant the broker permits after subscribing, which makes earlier permits void."""
        self._counted.dropped()
        self._free = self._size
        self._grant()

    def detached(self) -> None:
        """Do nothing, because ``attached`` grants all permits anew."""

    def arrived(self, messages: int, size_bytes: int) -> None:
        """Count the bytes of a received entry."""
        self._counted.arrived(size_bytes)

    def taken(self, messages: int, size_bytes: int) -> None:
        """Free the permits of messages that were removed from the queue."""
        self._counted.taken(size_bytes)
        self._free += messages
        self._grant()

    def acknowledged(self, size_bytes: int) -> None:
        """Stop counting the bytes of messages that were acknowledged or redelivered."""
        self._counted.acknowledged(size_bytes)

    def found_nothing(self) -> None:
        """Grant a permit for the message that the application waits for, if the size is 0."""
        if not self._size:
            self._grant(asked=1)

    def _grant(self, asked: int = 0) -> None:
        """Permit the broker to send as many messages as are free in the queue.

        At size 0, grant permits for the messages that callers wait for and that have none.
        """
        free = self._free if self._size else self._consumer.missing + asked
        if free > 0 and free >= self._size // 2 and not self._paused:
            self._free = 0
            self._consumer.grant(free)

    def pause(self) -> None:
        """Grant the broker no permits until ``resume``."""
        self._paused = True

    def resume(self) -> None:
        """Grant the broker permits again."""
        self._paused = False
        self._grant()

    def close(self) -> None:
        """Stop counting all bytes, and grant no further permits."""
        self._paused = True
        self._counted.close()


class Granting(Protocol):
    """Interface (typing Protocol) with the methods of a consumer that its queue calls."""

    @property
    def queued(self) -> int:
        """Number of messages received from the broker, but not yet by the application."""

    @property
    def missing(self) -> int:
        """Number of messages that callers wait for and that are neither queued nor permitted."""

    def grant(self, permits: int) -> None:
        """Permit the broker to send ``permits`` further messages (FLOW)."""

    async def more_is_pending(self) -> bool:
        """Return True if the broker has more messages than it is permitted to send.

        Exclusive and Failover: by the last message id. Other types: by CONSUMER_STATS with a
        backlog and no permits left.
        """


class ReceiverQueue(Protocol):
    """Interface (typing Protocol) of the queue that grants a topic consumer's permits.

    The consumer calls the methods on events; the queue grants permits, immediately or later.
    It also counts the memory of messages that were received in advance.
    """

    growths: int
    """Number of times that the size was raised."""
    shrinks: int
    """Number of times that the size was lowered."""

    @property
    def current_size(self) -> int:
        """Current limit on messages queued in the client or on their way to it."""

    def attached(self) -> None:
        """Grant the broker permits after subscribing, which makes earlier permits void.

        Queued messages were dropped, and are not counted any more.
        """

    def detached(self) -> None:
        """Grant no permits until attached again, because the connection is lost.

        Queued messages are dropped, and reported by ``taken``.
        """

    def arrived(self, messages: int, size_bytes: int) -> None:
        """Count the messages and bytes of a received entry."""

    def taken(self, messages: int, size_bytes: int) -> None:
        """Free the permits of messages that were removed from the queue."""

    def acknowledged(self, size_bytes: int) -> None:
        """Stop counting the bytes of messages that were acknowledged or redelivered.

        A no-op for queues that stop counting when the application receives a message.
        """

    def found_nothing(self) -> None:
        """Request messages, because the application waits and the queue is empty."""

    def pause(self) -> None:
        """Grant the broker no permits until ``resume``."""

    def resume(self) -> None:
        """Grant the broker permits again."""

    def close(self) -> None:
        """Stop counting all messages and bytes, and grant no further permits."""
