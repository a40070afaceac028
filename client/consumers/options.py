"""Options of consumers and readers, with the official client's names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from client.arguments import check_options
from client.exceptions import InvalidConfiguration
from client.memory.receiver_queues import ReceiverQueuePolicy
from client.messages.enums import (
    ConsumerCryptoFailureAction,
    ConsumerType,
    InitialPosition,
    KeySharedMode,
    RegexSubscriptionMode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from client.interceptors import ConsumerInterceptor
    from client.schema.schema import Schema

_HASH_RANGE = 65_536


@dataclass(frozen=True, slots=True)
class ConsumerDeadLetterPolicy:
    """The limit on redeliveries, after which a message is sent to the dead-letter topic.

    Args:
        max_redeliver_count: Maximum number of redeliveries, at least 1, after which a message goes
            to the dead-letter topic.
        dead_letter_topic: Name of the dead-letter topic; None for ``<topic>-<subscription>-DLQ``.
        initial_subscription_name: A subscription to create with the dead-letter topic.
        retry_letter_topic: Topic to which ``reconsume_later`` sends; None for
            ``<topic>-<subscription>-RETRY``.

    Raises:
        InvalidConfiguration: ``max_redeliver_count`` is not positive.
    """

    max_redeliver_count: int
    dead_letter_topic: str | None = None
    initial_subscription_name: str | None = None
    retry_letter_topic: str | None = None

    def __post_init__(self) -> None:
        count: object = self.max_redeliver_count
        if not isinstance(count, int) or count < 1:
            raise InvalidConfiguration(f"max_redeliver_count is {count!r:.50}: it is at least 1")


class ConsumerKeySharedPolicy:
    """The way in which the consumers of a Key_Shared subscription divide the keys.

    Args:
        key_shared_mode: Who divides the keys: the broker (AutoSplit), or the consumers (Sticky).
        allow_out_of_order_delivery: Whether a key may move to a new consumer before the old
            consumer has acknowledged all of the key's messages.
        sticky_ranges: Hash ranges that this consumer requests with Sticky, as pairs of first and
            last hash, from 0 to 65,535.

    Raises:
        InvalidConfiguration: The ranges are missing, overlap, or lie outside 0 to 65,535.
    """

    def __init__(
        self,
        key_shared_mode: KeySharedMode = KeySharedMode.AutoSplit,
        allow_out_of_order_delivery: bool = False,
        sticky_ranges: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        if not isinstance(key_shared_mode, KeySharedMode):
            raise InvalidConfiguration(
                f"key_shared_mode is one of KeySharedMode, not {key_shared_mode!r:.50}"
            )
        self._mode = key_shared_mode
        self._out_of_order = allow_out_of_order_delivery
        self._ranges = sorted(sticky_ranges or ())
        if (key_shared_mode is KeySharedMode.Sticky) != bool(self._ranges):
            raise InvalidConfiguration("Sticky needs sticky_ranges, and AutoSplit allows none")
        last = -1
        for first, end in self._ranges:
            if not last < first <= end < _HASH_RANGE:
                raise InvalidConfiguration(
                    f"the range ({first}, {end}) of sticky_ranges overlaps another one, is empty or"
                    f" is not within 0 to {_HASH_RANGE - 1}"
                )
            last = end

    @property
    def key_shared_mode(self) -> KeySharedMode:
        """The division of keys: by the broker (AutoSplit), or by the consumers (Sticky)."""
        return self._mode

    @property
    def allow_out_of_order_delivery(self) -> bool:
        """True if a key may move to another consumer before all its messages are acknowledged."""
        return self._out_of_order

    @property
    def sticky_ranges(self) -> list[tuple[int, int]]:
        """The hash ranges of keys that this consumer requests; empty with AutoSplit."""
        return list(self._ranges)


@dataclass(frozen=True, slots=True)
class ConsumerBatchReceivePolicy:
    """The limits of a batch that ``batch_receive`` returns.

    The first limit reached ends the batch.

    Args:
        max_num_message: Maximum number of messages; 0 or less for no limit.
        max_num_bytes: Maximum payload bytes; 0 or less for no limit.
        timeout_ms: Longest time in milliseconds to wait for more messages; 0 or less for no limit.

    Raises:
        InvalidConfiguration: No limit is set.
    """

    max_num_message: int = -1
    max_num_bytes: int = 10 * 1024 * 1024
    timeout_ms: int = 100

    def __post_init__(self) -> None:
        if self.max_num_message <= 0 and self.max_num_bytes <= 0 and self.timeout_ms <= 0:
            raise InvalidConfiguration(
                "a batch receive policy needs a limit: of messages, of bytes or of time"
            )


@dataclass(frozen=True, slots=True)
class NegativeAckBackoff:
    """A delay before negatively acknowledged messages are redelivered.

    It grows with each redelivery.

    Args:
        min_delay_ms: Delay before the first redelivery, in milliseconds.
        max_delay_ms: Maximum delay, in milliseconds.
        multiplier: Factor by which the delay grows with each redelivery.
    """

    min_delay_ms: int = 1_000
    max_delay_ms: int = 60_000
    multiplier: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.min_delay_ms <= self.max_delay_ms or not (1 <= self.multiplier < math.inf):
            raise InvalidConfiguration(
                "a NegativeAckBackoff needs 0 < min_delay_ms <= max_delay_ms and a finite "
                f"multiplier >= 1: {self}"
            )

    def next(self, redelivery_count: int) -> int:
        """Return the delay in milliseconds before the next redelivery of a message."""
        longest = math.log(self.max_delay_ms) - math.log(self.min_delay_ms)
        if redelivery_count * math.log(self.multiplier) > longest + 1:
            return self.max_delay_ms  # The power might overflow a float.
        return min(self.max_delay_ms, int(self.min_delay_ms * self.multiplier**redelivery_count))


LEAST_UNACKED_TIMEOUT_MS = 10_000
"""Shortest ack timeout, as in the official clients."""
COMPACTED_TYPES = (ConsumerType.Exclusive, ConsumerType.Failover)
QUEUE_POLICIES = tuple(policy.value for policy in ReceiverQueuePolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    """The arguments of ``subscribe``: those of the official client, with its defaults, and more.

    Attributes:
        consumer_type: How the subscription's consumers share its messages.
        schema: Schema that decodes the values; with None, values are bytes.
        message_listener: Function, or coroutine function, called with the consumer and each
            message, instead of ``receive``.
        receiver_queue_size: Maximum number of messages queued in the client for a topic. With 0,
            each ``receive`` fetches a single message.
        max_total_receiver_queue_size_across_partitions: Maximum number of messages queued for all
            topics of the consumer together.
        consumer_name: Name of the consumer; None for ten random hexadecimal digits.
        unacked_messages_timeout_ms: Time after which an unacknowledged message is redelivered (ack
            timeout), at least 10,000 ms; None for no such timeout.
        broker_consumer_stats_cache_time_ms: Maximum age of cached broker statistics.
        negative_ack_redelivery_delay_ms: Delay between negative acknowledgement and redelivery.
        is_read_compacted: Whether to read the compacted topic (only Exclusive and Failover).
        properties: Properties of the consumer, shown in the broker's statistics.
        pattern_auto_discovery_period: Seconds between two listings of the topics that match a
            pattern.
        initial_position: Start position of a new subscription.
        replicate_subscription_state_enabled: Whether to ask the broker to replicate the
            subscription's state.
        max_pending_chunked_message: Maximum number of incomplete chunked messages.
        auto_ack_oldest_chunked_message_on_queue_full: Whether to acknowledge the chunks of the
            oldest incomplete message when there are too many, instead of requesting their
            redelivery.
        start_message_id_inclusive: Whether a seek delivers the target message itself, too.
        batch_receive_policy: Limits of ``batch_receive``; None for the default.
        key_shared_policy: Policy of a Key_Shared subscription; None for AutoSplit.
        batch_index_ack_enabled: Whether to send the broker acknowledgements of single messages in a
            batch.
        regex_subscription_mode: Topic domains matched against a pattern.
        dead_letter_policy: What to do with messages redelivered too often.
        crypto_key_reader: Refused: encryption is not supported.
        crypto_failure_action: What to do with encrypted messages: FAIL leaves them in the
            subscription, DISCARD acknowledges them, CONSUME delivers them undecrypted.
        is_pattern_topic: Whether the topic argument is a pattern.
        negative_ack_backoff: Growing delays that replace negative_ack_redelivery_delay_ms.
        retry_enabled: Whether to subscribe to the retry topic, too, and to allow
            ``reconsume_later``.
        ack_group_time_ms: Longest time in milliseconds for which acknowledgements are collected
            before sending; 0 sends each immediately.
        ack_group_size: Maximum number of acknowledgements that are collected before sending.
        ack_receipt_enabled: Whether ``acknowledge`` waits for the broker's receipt.
        receiver_queue_policy: How the size of the receiver queue is chosen: "bytes" adapts it to
            the client's memory limit, "fixed" always uses receiver_queue_size.
        memory_until_acknowledged: Whether a message counts as client memory until it is
            acknowledged, not only until the application receives it.
        priority_level: On Shared subscriptions, consumers of level 0 get messages first. On
            Failover ones, the consumer with the lowest level becomes active.
        subscription_properties: Properties that are stored with a new subscription.
        force_topic_creation: Whether subscribing may create the topic.
        auto_update_partitions_seconds: Interval in seconds at which new partitions are looked up; 0
            for never.
        expire_incomplete_chunks_seconds: Seconds after which an incomplete chunked message is given
            up; 0 for never.
        discovery_schedule: When to request the topics of a pattern: "polite", or like an official
            client: "java-watch", "java-poll", "cpp", "go".
        interceptors: See client.interceptors.
    """

    consumer_type: ConsumerType = ConsumerType.Exclusive
    schema: Schema[Any] | None = None
    message_listener: Callable[[Any, Any], object] | None = None
    receiver_queue_size: int = 1_000
    max_total_receiver_queue_size_across_partitions: int = 50_000
    consumer_name: str | None = None
    unacked_messages_timeout_ms: int | None = None
    broker_consumer_stats_cache_time_ms: int = 30_000
    negative_ack_redelivery_delay_ms: int = 60_000
    is_read_compacted: bool = False
    properties: Mapping[str, str] | None = None
    pattern_auto_discovery_period: float = 60
    initial_position: InitialPosition = InitialPosition.Latest
    crypto_key_reader: object | None = None
    replicate_subscription_state_enabled: bool = False
    max_pending_chunked_message: int = 10
    auto_ack_oldest_chunked_message_on_queue_full: bool = False
    start_message_id_inclusive: bool = False
    batch_receive_policy: ConsumerBatchReceivePolicy | None = None
    key_shared_policy: ConsumerKeySharedPolicy | None = None
    batch_index_ack_enabled: bool = False
    regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly
    dead_letter_policy: ConsumerDeadLetterPolicy | None = None
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    is_pattern_topic: bool = False
    negative_ack_backoff: NegativeAckBackoff | None = None
    retry_enabled: bool = False
    ack_group_time_ms: int = 100
    ack_group_size: int = 1_000
    ack_receipt_enabled: bool = False
    receiver_queue_policy: str = "bytes"
    memory_until_acknowledged: bool = False
    priority_level: int = 0
    subscription_properties: Mapping[str, str] | None = None
    force_topic_creation: bool = True
    auto_update_partitions_seconds: float = 60
    expire_incomplete_chunks_seconds: float = 60
    discovery_schedule: str = "polite"
    interceptors: Sequence[ConsumerInterceptor] = ()

    def __post_init__(self) -> None:
        check_options(self)
        timeout = self.unacked_messages_timeout_ms
        if timeout and timeout < LEAST_UNACKED_TIMEOUT_MS:
            raise InvalidConfiguration(
                f"unacked_messages_timeout_ms is {timeout}: it must be 0 (never) or at least"
                f" {LEAST_UNACKED_TIMEOUT_MS}"
            )
        if self.is_read_compacted and self.consumer_type not in COMPACTED_TYPES:
            raise InvalidConfiguration(
                "is_read_compacted is for ConsumerType.Exclusive and Failover, not"
                f" {self.consumer_type.name}"
            )
        if self.receiver_queue_policy not in QUEUE_POLICIES:
            raise InvalidConfiguration(
                f"receiver_queue_policy is {self.receiver_queue_policy!r:.40}: it is one of"
                f" {', '.join(QUEUE_POLICIES)}"
            )
        if self.retry_enabled and self.dead_letter_policy is None:
            raise InvalidConfiguration("retry_enabled needs a dead_letter_policy")
        counts_redeliveries = self.consumer_type not in COMPACTED_TYPES
        if self.dead_letter_policy is not None and not (counts_redeliveries or self.retry_enabled):
            raise InvalidConfiguration(
                "dead_letter_policy is for ConsumerType.Shared and KeyShared, or with"
                f" retry_enabled: {self.consumer_type.name} subscriptions count no redeliveries"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions:
    """The arguments of ``create_reader``: the official client's, with its defaults, and more.

    Attributes:
        schema: As for a consumer.
        reader_listener: Function called with the reader and each message, instead of ``read_next``.
        receiver_queue_size: As for a consumer.
        reader_name: The consumer's name; None for a random name.
        subscription_role_prefix: Prefix of the subscription's name; None for "reader".
        subscription_name: Full name of the subscription; None for a random name.
        is_read_compacted: As for a consumer.
        crypto_key_reader: Refused: encryption is not supported.
        start_message_id_inclusive: Whether reading starts with the start message or seek target
            itself, not after it.
        crypto_failure_action: As for a consumer.
        receiver_queue_policy: As for a consumer.
        auto_update_partitions_seconds: As for a consumer.
    """

    schema: Schema[Any] | None = None
    reader_listener: Callable[[Any, Any], object] | None = None
    receiver_queue_size: int = 1_000
    reader_name: str | None = None
    subscription_role_prefix: str | None = None
    subscription_name: str | None = None
    is_read_compacted: bool = False
    crypto_key_reader: object | None = None
    start_message_id_inclusive: bool = False
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    receiver_queue_policy: str = "bytes"
    auto_update_partitions_seconds: float = 60

    def __post_init__(self) -> None:
        check_options(self)
