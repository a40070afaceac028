"""Routing of messages to partitions, as in the official clients."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from client.exceptions import InvalidConfiguration
from client.messages.enums import PartitionsRoutingMode
from client.messages.key_hash import key_hash
from client.producers.unsent_message import unsent_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.messages.message import Message
    from client.producers.options import ProducerOptions
    from client.producers.sending.pending_message import PendingMessage
    from limiter.clock import Clock


class Router:
    """The choice of a message's partition: by key, or without a key by the routing mode.

    With batching, messages without a key stay on a partition until a batch would be full or due,
    then move to the next partition: otherwise no batches would form.

    Args:
        options: Producer options.
        topic: Full name, without a partition's suffix.
        clock: The source of time.
        first: The first partition; random if None.

    Raises:
        InvalidConfiguration: CustomPartition without a message_router.

    Source: upstream RoundRobinMessageRouter and SinglePartitionMessageRouter of the C++ client.
    """

    def __init__(
        self, options: ProducerOptions, topic: str, clock: Clock, first: int | None = None
    ) -> None:
        custom = options.message_routing_mode is PartitionsRoutingMode.CustomPartition
        if custom and options.message_router is None:
            raise InvalidConfiguration("CustomPartition needs a message_router: give one")
        self._options = options
        self._topic = topic
        self._clock = clock
        self._at = random.randrange(2**31) if first is None else first
        self._count = self._bytes = 0
        self._since = clock.now()

    def partition(self, message: PendingMessage, partitions: int) -> int:
        """Return the index of a message's partition.

        Raises:
            InvalidConfiguration: The program's router returned an invalid partition.
        """
        options = self._options
        if options.message_router is not None:
            return self._chosen(options.message_router, message, partitions)
        if message.partition_key is not None:
            return key_hash(options.hashing_scheme, message.partition_key) % partitions
        if options.message_routing_mode is PartitionsRoutingMode.UseSinglePartition:
            return self._at % partitions
        if not options.batching_enabled:
            self._at += 1
        elif self._batch_is_over(message.size_bytes):
            self._at += 1
            self._since = self._clock.now()
            self._count = self._bytes = 0
        self._count += 1
        self._bytes += message.size_bytes
        return self._at % partitions

    def _batch_is_over(self, size_bytes: int) -> bool:
        options = self._options
        return (
            self._count >= options.batching_max_messages
            or self._bytes + size_bytes >= options.batching_max_allowed_size_in_bytes
            or self._clock.now() - self._since > options.batching_max_publish_delay_ms / 1000
        )

    def _chosen(
        self, router: Callable[[Message, int], int], message: PendingMessage, partitions: int
    ) -> int:
        index = router(unsent_message(message, self._topic), partitions)
        if not 0 <= index < partitions:
            raise InvalidConfiguration(
                f"the message_router named partition {index!r:.50}: there are 0 to {partitions - 1}"
            )
        return index
