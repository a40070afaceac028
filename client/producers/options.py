"""The arguments of a producer, under the official client's names and with its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from client.exceptions import InvalidConfiguration, OperationNotSupported
from client.messages.enums import (
    BatchingType,
    CompressionType,
    HashingScheme,
    PartitionsRoutingMode,
    ProducerAccessMode,
    check_choices,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import proto.PulsarApi_pb2 as pb
    from client.interceptors import ProducerInterceptor
    from client.messages.message import Message


class ProducerSchema(Protocol):
    """A schema, as far as a producer needs it."""

    def encode(self, value: Any) -> bytes:  # noqa: ANN401 - what a schema takes only it knows
        """Return a value as it is sent.

        Raises:
            Exception: The value does not fit; which exception, each schema decides.
        """

    def schema_info(self) -> pb.Schema | None:
        """Return what the broker is told; None for plain bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """The choices for one producer; unset, they are those of the official asyncio client.

    Attributes:
        producer_name: Unique among the topic's producers; None lets the broker choose.
        schema: Encodes values; None takes bytes.
        initial_sequence_id: The number before the first message's; None goes on behind the last
            one that the broker has of a producer of this name.
        send_timeout_millis: A message without a receipt in so many milliseconds fails, wherever
            it is; 0 waits without end.
        compression_type: Applied to a batch as a whole, or to a message that is in none.
        max_pending_messages: Messages without a receipt; 0 lets the memory limit alone bound them.
        max_pending_messages_across_partitions: Shared evenly by the partitions; 0 is no bound.
        block_if_queue_full: True and None: ``send`` waits for its place and memory. False: it
            fails at once. ``send_nowait`` never waits.
        batching_enabled: Whether messages are gathered to batches.
        batching_max_messages: A batch of so many is sent at once.
        batching_max_allowed_size_in_bytes: So is one of so many bytes of payload.
        batching_max_publish_delay_ms: So is one that is so old.
        chunking_enabled: A message above the broker's limit is sent in parts, not refused; not
            with batches.
        message_routing_mode: Which partition gets a message without a key.
        lazy_start_partitioned_producers: Attach to a partition with its first message.
        properties: Told to the broker, and shown in its statistics.
        batching_type: Whether the messages of a batch share their key.
        access_mode: Whether the topic may have other producers.
        hashing_scheme: Finds the partition of a key; not the official client's to choose, whose
            default this is.
        message_router: Chooses the partition of each message, among so many.
        initial_subscription_name: A subscription that the topic gets when it is created.
        interceptors: Called for each message, in order.
        encryption_key: Refused: this client does not encrypt.
        crypto_key_reader: Refused as well.

    Raises:
        InvalidConfiguration: A number is out of its range, or None where one has to be.
        OperationNotSupported: Encryption was asked for.
    """

    producer_name: str | None = None
    schema: ProducerSchema | None = None
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
    message_router: Callable[[Message, int], int] | None = None
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
        check_choices(self)
        if self.batching_enabled and self.chunking_enabled:
            raise InvalidConfiguration(
                "batches and chunks exclude each other: with chunking_enabled, batching_enabled is "
                "False"
            )
        for name, least in _LEAST.items():
            number = getattr(self, name)
            if not isinstance(number, int) or number < least:
                raise InvalidConfiguration(
                    f"{name} is a number from {least} on, not {number!r:.50}"
                )

    @property
    def waits(self) -> bool:
        """True if ``send`` waits for its place and memory."""
        return self.block_if_queue_full is not False

    @property
    def send_timeout_seconds(self) -> float | None:
        """The send timeout; None if there is none."""
        return self.send_timeout_millis / 1000 or None


_LEAST = {
    "send_timeout_millis": 0,
    "max_pending_messages": 0,
    "max_pending_messages_across_partitions": 0,
    "batching_max_messages": 1,
    "batching_max_allowed_size_in_bytes": 1,
    "batching_max_publish_delay_ms": 0,
}
