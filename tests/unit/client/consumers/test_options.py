"""A consumer's arguments are checked immediately."""

import math
from typing import Any

import pytest

from client.consumers.options import ConsumerOptions
from client.consumers.subscribing import Subscription
from client.exceptions import InvalidConfiguration
from client.messages.enums import ConsumerType


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"consumer_type": 7}, "consumer_type is one of ConsumerType, such as .*, not 7"),
        ({"receiver_queue_size": -1}, "receiver_queue_size is a whole number from 0 on, not -1"),
        ({"receiver_queue_size": 1.5}, "receiver_queue_size is a whole number from 0 on, not 1.5"),
        ({"receiver_queue_size": None}, "receiver_queue_size is a whole number .*, not None"),
        ({"max_pending_chunked_message": None}, "max_pending_chunked_message is a whole number"),
        ({"ack_group_size": None}, "ack_group_size is a whole number, not None"),
        ({"ack_group_size": "x"}, "ack_group_size is a whole number, not 'x'"),
        ({"ack_group_time_ms": None}, "ack_group_time_ms is a finite number, not None"),
        ({"negative_ack_redelivery_delay_ms": math.nan}, "_ms is a finite number from 0 on"),
        ({"negative_ack_redelivery_delay_ms": math.inf}, "_ms is a finite number from 0 on"),
        ({"auto_update_partitions_seconds": None}, "_seconds is a finite number, not None"),
        ({"negative_ack_backoff": 5}, "negative_ack_backoff is a NegativeAckBackoff, not 5"),
        ({"batch_receive_policy": 5}, "batch_receive_policy is a ConsumerBatchReceivePolicy"),
        ({"key_shared_policy": "x"}, "key_shared_policy is a ConsumerKeySharedPolicy, not 'x'"),
        ({"unacked_messages_timeout_ms": -1}, "must be 0 .never. or at least 10000"),
        (
            {"is_read_compacted": True, "consumer_type": ConsumerType.Shared},
            "is for ConsumerType.Exclusive and Failover, not Shared",
        ),
    ],
)
def test_an_invalid_option_is_refused_with_its_name(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=text):
        ConsumerOptions(**arguments)


@pytest.mark.parametrize("name", ["", None, 5])
def test_an_empty_or_non_str_subscription_name_is_refused(name: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="subscription_name is a str and not empty"):
        Subscription(name, "consumer")
