from __future__ import annotations

from typing import Any

import proto.PulsarApi_pb2 as pb
from broker.admin.resources.messages.subscription_stats import Wanted, subscription_stats
from broker.admin.resources.messages.topic_stats import partitioned_stats
from tests.support.messages.consumers import consume, kept_topic


def together(
    partitions: dict[str, dict[str, object]], count: int, *, one_by_one: bool
) -> dict[str, Any]:
    """Put statistics together in one go."""
    steps = partitioned_stats(partitions, count, one_by_one=one_by_one)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: dict[str, Any] = done.value
            return found


ADDED = (
    "msgRateOut",
    "messageAckRate",
    "msgThroughputOut",
    "bytesOutCounter",
    "msgOutCounter",
    "msgRateRedeliver",
    "availablePermits",
    "unackedMessages",
    "drainingHashesClearedTotal",
)


def one_consumer(figures: int, name: str) -> dict[str, object]:
    """Return a consumer of several partitions as it is shown."""
    return {
        **dict.fromkeys(ADDED, figures),
        "consumerName": name,
        "chunkedMessageRate": 0.0,
        "avgMessagesPerEntry": 0,
        "lastAckedTimestamp": 0,
        "lastConsumedTimestamp": 0,
        "lastConsumedFlowTimestamp": 0,
        "lastAckedTime": "1970-01-01T00:00:00Z",
        "lastConsumedTime": "1970-01-01T00:00:00Z",
    }


def partition(messages: int, **more: object) -> dict[str, object]:
    consumer = {**dict.fromkeys(ADDED, messages), "consumerName": f"c{messages}", "address": "/a"}
    subscription = {
        "msgBacklog": messages,
        "type": "Shared",
        "durable": True,
        "lastAckedTimestamp": 7,
        "keySharedMode": "AUTO_SPLIT",
        "earliestMsgPublishTimeInBacklog": messages,
        "consumers": [consumer],
    }
    return {
        "msgInCounter": messages,
        "msgRateIn": float(messages),
        "backlogQuotaLimitSize": -1,
        "msgChunkPublished": messages > 1,
        "lastPublishTimeStamp": messages,
        "ownerBroker": "here",
        "oldestBacklogMessageAgeSeconds": -1,
        "subscriptions": {"s": subscription},
        **more,
    }


def test_partitions_are_added_up() -> None:
    # When
    found = together({"p-0": partition(1), "p-1": partition(2)}, 2, one_by_one=False)
    # Then
    assert found == {
        "msgInCounter": 3,
        "msgRateIn": 3.0,
        "backlogQuotaLimitSize": -1,
        "msgChunkPublished": True,
        "lastPublishTimeStamp": 2,
        "oldestBacklogMessageAgeSeconds": 0,
        "subscriptions": {
            "s": {
                "msgBacklog": 3,
                "type": "Shared",
                "durable": True,
                "lastAckedTimestamp": 0,
                "earliestMsgPublishTimeInBacklog": 1,
                "consumers": [one_consumer(3, "c2")],
            }
        },
        "metadata": {"partitions": 2, "deleted": False},
        "partitions": {},
    }


def test_a_subscription_of_some_partitions_is_there() -> None:
    # When
    without = partition(1, subscriptions={})
    found = together({"p-0": without, "p-1": partition(2)}, 2, one_by_one=True)
    # Then
    assert found["subscriptions"]["s"]["msgBacklog"] == 2
    assert list(found["partitions"]) == ["p-0", "p-1"]


def test_a_topic_none_of_whose_partitions_was_used_has_no_figures() -> None:
    assert together({}, 2, one_by_one=True) == {
        "metadata": {"partitions": 2, "deleted": False},
        "partitions": {},
    }


async def test_each_consumer_is_a_step() -> None:
    # Given
    subscription = (await kept_topic()).subscriptions().create("s")
    for number in range(20):
        consume(subscription, pb.CommandSubscribe.Key_Shared, name=f"c{number}")
    # When
    steps = list(subscription_stats(subscription, Wanted()))
    # Then: once for itself, once for its hashes that drain
    assert len(steps) == 40


def test_partitions_are_put_together_a_key_of_their_subscriptions_at_a_time() -> None:
    partitions = {str(number): partition(number) for number in range(3)}
    keys = len(partition(0)) - len(("ownerBroker",))
    # A consumer of each is a step; the mode of Key_Shared is not put together.
    inside = len(("s",)) + len(partition(0)["subscriptions"]["s"]) - 1 + 3  # type: ignore[index]
    looks = len(partitions) * len(("partition", "subscriptions", "s"))
    steps = list(partitioned_stats(partitions, 3, one_by_one=True))
    assert len(steps) == keys + inside + looks
