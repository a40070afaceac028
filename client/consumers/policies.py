"""Policies of a consumer, under the official client's names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.exceptions import InvalidConfiguration
from client.messages.enums import KeySharedMode

if TYPE_CHECKING:
    from collections.abc import Sequence

_HASH_RANGE = 65_536


@dataclass(frozen=True, slots=True)
class ConsumerDeadLetterPolicy:
    """A limit on redeliveries, after which a message goes to the dead-letter topic.

    Args:
        max_redeliver_count: Most redeliveries, at least 1, before the dead-letter topic.
        dead_letter_topic: None for ``<topic>-<subscription>-DLQ``.
        initial_subscription_name: A subscription to create with the dead-letter topic.
        retry_letter_topic: Target of ``reconsume_later``; None for
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
    """A division of the keys among the consumers of a Key_Shared subscription.

    Args:
        key_shared_mode: Division by the broker (AutoSplit), or by the consumers (Sticky).
        allow_out_of_order_delivery: Whether a key may move to a new consumer before the old
            consumer has acknowledged all of the key's messages.
        sticky_ranges: With Sticky: the consumer's hashes, 0 to 65,535, as pairs of first and last.

    Raises:
        InvalidConfiguration: The ranges are missing, overlap, or lie outside.
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
            raise InvalidConfiguration("sticky_ranges go with KeySharedMode.Sticky, and only there")
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
        """The side dividing the keys."""
        return self._mode

    @property
    def allow_out_of_order_delivery(self) -> bool:
        """True if a key may move to a new consumer immediately."""
        return self._out_of_order

    @property
    def sticky_ranges(self) -> list[tuple[int, int]]:
        """The consumer's hash ranges; empty with AutoSplit."""
        return list(self._ranges)


@dataclass(frozen=True, slots=True)
class ConsumerBatchReceivePolicy:
    """Limits of a ``batch_receive`` call; the first limit reached ends the batch.

    Args:
        max_num_message: Most messages; 0 or less for no limit.
        max_num_bytes: Maximum payload bytes; 0 or less for no limit.
        timeout_ms: Longest wait for more messages; 0 or less for no limit.

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
    """The redelivery delay of negatively acknowledged messages, growing with each redelivery.

    Args:
        min_delay_ms: Delay of the first redelivery.
        max_delay_ms: Largest delay.
        multiplier: Growth factor per redelivery.
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
        """Return the delay, in milliseconds, after the given number of redeliveries."""
        longest = math.log(self.max_delay_ms) - math.log(self.min_delay_ms)
        if redelivery_count * math.log(self.multiplier) > longest + 1:
            return self.max_delay_ms  # The power might overflow a float.
        return min(self.max_delay_ms, int(self.min_delay_ms * self.multiplier**redelivery_count))
