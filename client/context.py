"""The parts of a client that its producers, consumers and readers share."""

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
    """A producer, consumer, reader or table view."""

    async def close(self) -> None:
        """End it; once more is harmless."""

    def statistics(self) -> object:
        """Return the figures of this moment."""


@dataclass(frozen=True, slots=True)
class ClientContext:
    """The parts of one client.

    Attributes:
        cluster: Looks up, connects, lists.
        memory: The client's limit; several clients may share one.
        operation_timeout_seconds: How long a request or an attachment may take.
        producer_ids: Numbers that no other producer of this client has.
        consumer_ids: Numbers that no other consumer of this client has.
        watch_ids: Numbers that no other watch of this client has.
        parts: Those that a program opened and nobody closed. ``Client`` adds them; each takes
            itself out when it is closed.
        receiver_queues: The receiver queues of its consumers; closed after them.
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
        # Made here, since there is one to a client, and it needs what the others gave.
        object.__setattr__(self, "receiver_queues", ReceiverQueues(self.memory, self.clock))

    @property
    def clock(self) -> Clock:
        """The source of time."""
        return self.cluster.clock

    def due(self) -> float:
        """Return when an operation that begins now is to be over."""
        return self.clock.now() + self.operation_timeout_seconds

    @property
    def largest_message_bytes(self) -> int:
        """The bytes that a message may have, sent or received."""
        return largest_message_bytes(self.memory.limit_bytes)

    async def partitions(self, topic: str, *, auto_create: bool = True) -> int:
        """Return how many partitions a topic has; 0 for one that is not partitioned.

        Args:
            topic: Full name.
            auto_create: Whether a topic that is not there may be created.

        Raises:
            PulsarException: The broker refused for good.
            Timeout: Nobody answered for the operation timeout.
        """
        return await self.cluster.patience.until(
            lambda: self.cluster.partitions(topic, auto_create=auto_create),
            f"the partitions of {topic} could not be looked up",
            self.operation_timeout_seconds,
            attachment_may_pass,
        )
