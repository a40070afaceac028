"""The state that a client shares with its producers, consumers and readers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Protocol

from client.memory.receiver_queues import ReceiverQueues
from client.messages.entry import largest_message_bytes
from client.patience import attachment_may_pass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.pulsar_client import PulsarClient
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.clock import Clock


class Part(Protocol):
    """Interface (typing Protocol) of a client's producer, consumer, reader or table view."""

    async def close(self) -> None:
        """Close this producer, consumer, reader or table view; further calls do nothing."""

    def statistics(self) -> object:
        """Return the current statistics of this producer, consumer, reader or table view."""


@dataclass(frozen=True, slots=True)
class ClientContext:
    """The state that a client shares with its producers, consumers and readers.

    Attributes:
        cluster: Client that looks up and connects to brokers, and lists topics.
        memory: The memory limit, possibly shared by several clients.
        operation_timeout_seconds: Timeout of a request or an attachment.
        producer_ids: Source of producer numbers that are unique in the client.
        consumer_ids: Source of consumer numbers that are unique in the client.
        watch_ids: Source of watch numbers that are unique in the client.
        parts: Open producers, consumers, readers and table views. ``Client`` adds them; their own
            ``close`` removes them.
        receiver_queues: Receiver queues of all consumers, closed after the consumers.
    """

    cluster: PulsarClient
    memory: MemoryLimitController
    operation_timeout_seconds: float
    producer_ids: Iterator[int] = field(default_factory=count)
    consumer_ids: Iterator[int] = field(default_factory=count)
    watch_ids: Iterator[int] = field(default_factory=count)
    parts: set[Part] = field(default_factory=set)
    receiver_queues: ReceiverQueues = field(init=False)

    def __post_init__(self) -> None:
        # Depends on the other fields.
        object.__setattr__(self, "receiver_queues", ReceiverQueues(self.memory, self.clock))

    @property
    def clock(self) -> Clock:
        """The clock that all deadlines use."""
        return self.cluster.clock

    def due(self) -> float:
        """Return the deadline of an operation that starts now."""
        return self.clock.now() + self.operation_timeout_seconds

    @property
    def largest_message_bytes(self) -> int:
        """Size limit of a message in bytes, for sending and receiving."""
        return largest_message_bytes(self.memory.limit_bytes)

    async def partitions(self, topic: str, *, auto_create: bool = True) -> int:
        """Return the number of a topic's partitions; 0 for an unpartitioned topic.

        Args:
            topic: Full name of the topic.
            auto_create: Whether a missing topic may be created.

        Raises:
            PulsarException: The broker refused for good.
            Timeout: No answer within the operation timeout.
        """
        return await self.cluster.patience.until(
            lambda: self.cluster.partitions(topic, auto_create=auto_create),
            f"the partitions of {topic} could not be looked up",
            self.operation_timeout_seconds,
            attachment_may_pass,
        )
