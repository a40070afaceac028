"""A consumer's arguments are checked immediately."""

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
        ({"receiver_queue_size": -1}, "receiver_queue_size is -1: it must not be negative"),
        ({"max_pending_chunked_message": -1}, "max_pending_chunked_message is -1"),
        ({"unacked_messages_timeout_ms": -1}, "must be 0 .never. or at least 10000"),
        (
            {"is_read_compacted": True, "consumer_type": ConsumerType.Shared},
            "is for ConsumerType.Exclusive and Failover, not Shared",
        ),
    ],
)
def test_what_makes_no_sense_is_named(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=text):
        ConsumerOptions(**arguments)


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_subscription_has_a_name(name: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="subscription_name is a str and not empty"):
        Subscription(name, "consumer")
