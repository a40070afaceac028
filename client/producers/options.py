"""The arguments of a producer, with the official client's names and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from client.arguments import check_options
from client.exceptions import InvalidConfiguration, OperationNotSupported
from client.messages.enums import (
    BatchingType,
    CompressionType,
    HashingScheme,
    PartitionsRoutingMode,
    ProducerAccessMode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from client.interceptors import ProducerInterceptor
    from client.messages.message import Message
    from client.schema.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """The options of a producer.

    Defaults are those of the official asyncio client.

    Attributes:
        producer_name: Unique among the topic's producers; None lets the broker choose.
        schema: Encodes values; None takes bytes.
        initial_sequence_id: The number before the first message's; None continues after the
            broker's last number for the producer's name.
        send_timeout_millis: Milliseconds until a message without a receipt fails; 0 for no limit.
        compression_type: Compression of a whole batch, or of an unbatched message.
        max_pending_messages: Maximum number of messages without a receipt; 0 leaves only the memory
            limit.
        max_pending_messages_across_partitions: Maximum number of such messages, split evenly
            between partitions; 0 for no limit.
        block_if_queue_full: True and None: ``send`` waits for a queue slot and memory. False:
            ``send`` fails immediately. ``send_nowait`` never waits.
        batching_enabled: Whether to group messages into batches.
        batching_max_messages: Messages in a full batch, sent immediately.
        batching_max_allowed_size_in_bytes: Payload bytes in a full batch.
        batching_max_publish_delay_ms: Longest delay of an open batch.
        chunking_enabled: Send a message above the broker's size limit in chunks; excludes batching.
        message_routing_mode: Choice of the partition for messages without a key.
        lazy_start_partitioned_producers: Attach to a partition with its first message.
        properties: Sent to the broker, and shown in its statistics.
        batching_type: Whether the messages of a batch share their key.
        access_mode: Whether the topic may have further producers.
        hashing_scheme: Hash for the partition of a key; fixed to this default in the official
            client.
        message_router: Chooses a message's partition; called with the message and the number of
            partitions.
        initial_subscription_name: A subscription to create with the topic.
        interceptors: Called for each message, in order.
        encryption_key: Refused: encryption is not supported.
        crypto_key_reader: Refused: encryption is not supported.

    Raises:
        InvalidConfiguration: A number is missing or out of range.
        OperationNotSupported: An encryption option is set.
    """

    producer_name: str | None = None
    schema: Schema[Any] | None = None
    initial_sequence_id: int | None = None
    send_timeout_millis: int = 30_000
    compression_type: CompressionType = CompressionType.NONE
    max_pending_messages: int = 1_000
    max_pending_messages_across_partitions: int = 50_000
    block_if_queue_full: bool | None = None
    batching_enabled: bool = True
    batching_max_messages: int = 1_000
    batching_max_allowed_size_in_bytes: int = 131_072
    batching_max_publish_delay_ms: int = 10
    chunking_enabled: bool = False
    message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution
    lazy_start_partitioned_producers: bool = False
    properties: Mapping[str, str] | None = None
    batching_type: BatchingType = BatchingType.Default
    access_mode: ProducerAccessMode = ProducerAccessMode.Shared
    hashing_scheme: HashingScheme = HashingScheme.BoostHash
    message_router: Callable[[Message[Any], int], int] | None = None
    initial_subscription_name: str | None = None
    interceptors: Sequence[ProducerInterceptor] = ()
    encryption_key: str | None = None
    crypto_key_reader: object | None = None

    def __post_init__(self) -> None:
        if self.encryption_key is not None or self.crypto_key_reader is not None:
            raise OperationNotSupported(
                "this client does not encrypt: leave encryption_key and crypto_key_reader out, "
                "and encrypt the content yourself"
            )
        check_options(self)
        if self.batching_enabled and self.chunking_enabled:
            raise InvalidConfiguration(
                "batches and chunks exclude each other: with chunking_enabled, batching_enabled is "
                "False"
            )

    @property
    def waits(self) -> bool:
        """True if ``send`` waits for a queue slot and memory, instead of failing."""
        return self.block_if_queue_full is not False

    @property
    def send_timeout_seconds(self) -> float | None:
        """The send timeout in seconds; None if there is none."""
        return self.send_timeout_millis / 1000 or None
