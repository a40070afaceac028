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
    """The options of a producer: the arguments of ``create_producer`` except the topic.

    Defaults are those of the official asyncio client.

    Attributes:
        producer_name: Name that no other producer of the topic may have; None lets the broker
            choose one.
        schema: Schema that encodes the values; with None, values are bytes.
        initial_sequence_id: The sequence id before that of the first message. None continues after
            the last one that the broker has stored for the producer's name.
        send_timeout_millis: Milliseconds until a message without a receipt fails; 0 for no limit.
        compression_type: Algorithm that compresses a whole batch, or an unbatched message.
        max_pending_messages: Maximum number of messages without a receipt; 0 for no limit but the
            memory limit.
        max_pending_messages_across_partitions: Maximum number of messages without a receipt in all
            partitions, split evenly between them; 0 for no limit.
        block_if_queue_full: With True or None, ``send`` waits for a queue slot and memory; with
            False, it fails immediately. ``send_nowait`` never waits.
        batching_enabled: Whether to group messages into batches.
        batching_max_messages: Number of messages at which a batch is full and sent immediately.
        batching_max_allowed_size_in_bytes: Payload bytes at which a batch is full and sent
            immediately.
        batching_max_publish_delay_ms: Longest time in milliseconds for which messages are collected
            in a batch.
        chunking_enabled: Whether to send a message above the broker's size limit in chunks;
            excludes batching.
        message_routing_mode: How a partition is chosen for messages without a key.
        lazy_start_partitioned_producers: Whether to attach to a partition only when a message is
            sent to it.
        properties: Properties of the producer, shown in the broker's statistics.
        batching_type: Whether all messages of a batch must have the same key.
        access_mode: Whether the topic may have other producers.
        hashing_scheme: Hash function that maps a key to a partition. The official client always
            uses this default.
        message_router: Function that returns the partition's index, given the message and the
            number of partitions.
        initial_subscription_name: Name of a subscription to create with the topic.
        interceptors: Interceptors called for each message, in this order.
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
