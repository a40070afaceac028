"""Policies refuse senseless values."""

import math
import sys
from typing import Any

import pytest

from client.consumers.options import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerKeySharedPolicy,
    ConsumerOptions,
    NegativeAckBackoff,
)
from client.exceptions import InvalidConfiguration
from client.messages.enums import KeySharedMode

STICKY = KeySharedMode.Sticky


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (ConsumerDeadLetterPolicy, {"max_redeliver_count": 0}),
        (ConsumerKeySharedPolicy, {"key_shared_mode": STICKY}),
        (ConsumerKeySharedPolicy, {"sticky_ranges": [(0, 1)]}),
        (ConsumerKeySharedPolicy, {"key_shared_mode": STICKY, "sticky_ranges": [(0, 5), (5, 9)]}),
        (ConsumerKeySharedPolicy, {"key_shared_mode": STICKY, "sticky_ranges": [(0, 65_536)]}),
        (ConsumerBatchReceivePolicy, {"max_num_bytes": 0, "timeout_ms": 0}),
        (NegativeAckBackoff, {"min_delay_ms": 0}),
        (NegativeAckBackoff, {"min_delay_ms": 2, "max_delay_ms": 1}),
        (NegativeAckBackoff, {"multiplier": 0.5}),
        (NegativeAckBackoff, {"multiplier": math.inf}),
        (NegativeAckBackoff, {"multiplier": math.nan}),
        (ConsumerOptions, {"unacked_messages_timeout_ms": 9_999}),
        (ConsumerOptions, {"receiver_queue_size": -1}),
        (ConsumerOptions, {"retry_enabled": True}),
        (ConsumerOptions, {"receiver_queue_policy": "most"}),
    ],
)
def test_an_invalid_policy_value_is_refused(kind: type, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        kind(**arguments)


def test_the_redelivery_delay_grows_up_to_its_maximum() -> None:
    backoff = NegativeAckBackoff(100, 1_000, 3)
    assert [backoff.next(count) for count in (0, 1, 2, 3, 10_000)] == [100, 300, 900, 1_000, 1_000]


@pytest.mark.parametrize("multiplier", [1.0, 1.0000001, 1e10, sys.float_info.max])
@pytest.mark.parametrize("count", [0, 1, 2, 63, 10_000, 2**32 - 1])
def test_the_redelivery_delay_stays_within_its_limits_for_any_multiplier(
    multiplier: float, count: int
) -> None:
    assert 100 <= NegativeAckBackoff(100, 1_000, multiplier).next(count) <= 1_000


def test_sticky_hash_ranges_are_sorted() -> None:
    policy = ConsumerKeySharedPolicy(STICKY, sticky_ranges=[(10, 20), (0, 5)])
    assert policy.sticky_ranges == [(0, 5), (10, 20)]
