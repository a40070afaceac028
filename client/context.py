"""The parts of a client that its producers, consumers and readers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from client.memory.receiver_queues import ReceiverQueues

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.pulsar_client import PulsarClient
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.clock import Clock


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
        receiver_queues: The receiver queues of its consumers; closed after them.
    """

    cluster: PulsarClient
    memory: MemoryLimitController
    operation_timeout_seconds: float
    producer_ids: Iterator[int] = field(default_factory=count)
    consumer_ids: Iterator[int] = field(default_factory=count)
    watch_ids: Iterator[int] = field(default_factory=count)
    receiver_queues: ReceiverQueues = field(init=False)

    def __post_init__(self) -> None:
        # Made here, since there is one to a client, and it needs what the others gave.
        object.__setattr__(self, "receiver_queues", ReceiverQueues(self.memory, self.clock))

    @property
    def clock(self) -> Clock:
        """Where time comes from."""
        return self.cluster.clock
