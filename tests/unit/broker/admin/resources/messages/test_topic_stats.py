from typing import Any

import proto.PulsarApi_pb2 as pb
from broker.admin.resources.messages.subscription_stats import Wanted, subscription_stats
from broker.admin.resources.messages.topic_stats import partitioned_stats
from tests.support.messages.consumers import consume, kept_topic


async def test_subscription_statistics_take_two_steps_per_consumer() -> None:
    subscription = (await kept_topic()).subscriptions().create("s")
    for number in range(20):
        consume(subscription, pb.CommandSubscribe.Key_Shared, name=f"c{number}")
    steps = list(subscription_stats(subscription, Wanted()))
    # A step for each consumer, and a step for each consumer's draining hashes
    assert len(steps) == 40


def together(
    partitions: dict[str, dict[str, object]], count: int, *, one_by_one: bool
) -> dict[str, Any]:
    """Merge statistics in one step."""
    steps = partitioned_stats(partitions, count, one_by_one=one_by_one)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: dict[str, Any] = done.value
            return found


def partition(messages: int, **more: object) -> dict[str, object]:
    consumer = {"consumerName": f"c{messages}", "availablePermits": messages, "address": "here"}
    subscription = {
        "msgBacklog": messages,
        "type": "Shared",
        "durable": True,
        "lastAckedTimestamp": 7,
        "consumers": [consumer],
    }
    return {
        "msgInCounter": messages,
        "msgRateIn": float(messages),
        "backlogQuotaLimitSize": -1,
        "averageMsgSize": float(messages),
        "msgChunkPublished": messages > 1,
        "topicCreationTimeStamp": messages,
        "lastPublishTimeStamp": messages,
        "ownerBroker": "here",
        "oldestBacklogMessageAgeSeconds": -1,
        "subscriptions": {"s": subscription},
        **more,
    }


def joined(name: str, permits: int) -> dict[str, object]:
    never = "1970-01-01T00:00:00Z"
    return {
        "consumerName": name,
        "availablePermits": permits,
        "lastAckedTime": never,
        "lastConsumedTime": never,
    }


def test_partitioned_statistics_aggregate_the_figures_of_all_partitions() -> None:
    found = together({"p-0": partition(1), "p-1": partition(2)}, 2, one_by_one=False)
    assert found == {
        "msgInCounter": 3,
        "msgRateIn": 3.0,
        "backlogQuotaLimitSize": -1,
        "averageMsgSize": 1.5,
        "msgChunkPublished": False,
        "topicCreationTimeStamp": 1,
        "lastPublishTimeStamp": 2,
        "oldestBacklogMessageAgeSeconds": 0,
        "subscriptions": {
            "s": {
                "msgBacklog": 3,
                "type": "Shared",
                "durable": True,
                "lastAckedTimestamp": 0,
                "consumers": [joined("c2", 3)],
            }
        },
        "metadata": {"partitions": 2, "deleted": False},
        "partitions": {},
    }


def test_the_oldest_backlog_message_of_all_partitions_is_shown_with_its_subscription() -> None:
    age, name = "oldestBacklogMessageAgeSeconds", "oldestBacklogMessageSubscriptionName"
    ages = {"a": 3, "b": 5, "c": 0}
    partitions = {one: partition(1, **{age: ages[one], name: one}, topicEpoch=1) for one in ages}
    found = together(partitions, 3, one_by_one=False)
    assert (found[age], found[name]) == (5, "b")
    assert "topicEpoch" not in found
    assert name not in together({"c": partitions["c"]}, 1, one_by_one=False)


def test_a_subscription_of_only_some_partitions_is_included() -> None:
    without = partition(1, subscriptions={})
    found = together({"p-0": without, "p-1": partition(2)}, 2, one_by_one=True)
    assert found["subscriptions"]["s"]["msgBacklog"] == 2
    assert list(found["partitions"]) == ["p-0", "p-1"]


def test_consumers_of_partitions_with_different_counts_are_not_merged() -> None:
    one, other = partition(1), partition(2)
    subscription: Any = other["subscriptions"]
    subscription["s"]["consumers"] *= 2
    found = together({"p-0": one, "p-1": other}, 2, one_by_one=False)
    expected = [joined("c1", 1), joined("c2", 2), joined("c2", 2)]
    assert found["subscriptions"]["s"]["consumers"] == expected


def test_producers_are_merged_by_their_index() -> None:
    first, second = {"producerId": 4, "msgRateIn": 1.0}, {"producerId": 5, "msgRateIn": 2.0}
    partitions = {"p-0": partition(1, publishers=[first]), "p-1": partition(2, publishers=[])}
    partitions["p-2"] = partition(3, publishers=[second, first])
    found = together(partitions, 3, one_by_one=False)
    expected = [{"producerId": 0, "msgRateIn": 3.0}, {"producerId": 0, "msgRateIn": 1.0}]
    assert found["publishers"] == expected


def test_a_topic_without_used_partitions_has_only_metadata() -> None:
    assert together({}, 2, one_by_one=True) == {
        "metadata": {"partitions": 2, "deleted": False},
        "partitions": {},
    }


def test_merging_partitions_takes_a_step_per_key_client_and_subscription() -> None:
    partitions = {str(number): partition(number) for number in range(3)}
    keys = len(partition(0)) - len(("ownerBroker",))
    inside = len(("s",)) + len(partition(0)["subscriptions"]["s"])  # type: ignore[index]
    clients = len(partitions) + len(("c",))
    looks = len(partitions) * len(("partition", "subscriptions", "s"))
    steps = list(partitioned_stats(partitions, 3, one_by_one=True))
    assert len(steps) == keys + inside + clients + looks
