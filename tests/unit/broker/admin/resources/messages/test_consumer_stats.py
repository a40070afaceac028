"""Statistics of producers and consumers."""

from collections.abc import Generator
from typing import Any, TypeVar

import pytest

import proto.PulsarApi_pb2 as pb
from broker.admin.resources.messages.consumer_stats import (
    consumer_stats,
    date,
    moment,
)
from broker.admin.resources.messages.topic_stats import _clients
from broker.configuration.config import BrokerConfig
from broker.messages.subscriptions.context import SubscriptionRules
from tests.support.messages.consumers import consume, kept_topic

T = TypeVar("T")


def found(steps: Generator[None, None, T]) -> T:
    """Take all steps; return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000_020, "2023-11-14T22:13:20.020Z"),
    ],
)
def test_a_timestamp_is_formatted_as_in_java(milliseconds: int, text: str) -> None:
    assert moment(milliseconds) == text


@pytest.mark.parametrize(("fraction", "text"), [(0, "20Z"), (20, "20.02Z"), (123, "20.123Z")])
def test_a_date_has_no_zeros_at_the_end_of_its_fraction(fraction: int, text: str) -> None:
    assert date(1_700_000_000_000 + fraction) == f"2023-11-14T22:13:{text}"


@pytest.mark.parametrize("role", [None, "shop"])
async def test_the_app_id_of_a_consumer_is_the_role_of_its_connection(role) -> None:
    subscription = (await kept_topic()).subscriptions().create("s")
    consumer, cnx = consume(subscription, pb.CommandSubscribe.Shared)
    cnx.role = role
    stats = found(consumer_stats(consumer, subscription.dispatcher))
    assert stats.get("appId") == role
    assert stats["lastAckedTime"] == "1970-01-01T00:00:00Z"
    assert "drainingHashes" not in stats


@pytest.mark.parametrize(
    ("profile", "waits"),
    [("floodgate", "its client has sent no permits for messages"), ("pulsar", None)],
)
async def test_only_profile_floodgate_shows_why_a_consumer_waits(profile, waits) -> None:
    config = BrokerConfig.from_properties({"floodgateProfile": profile})
    topic = await kept_topic()
    subscription = topic.subscriptions(SubscriptionRules.of(config)).create("s")
    consumer, _ = consume(subscription, pb.CommandSubscribe.Shared)
    stats = found(consumer_stats(consumer, subscription.dispatcher))
    assert stats.get("waitsFor") == waits


@pytest.mark.parametrize(("disorder", "shown"), [(False, True), (True, False)])
async def test_draining_hashes_are_shown_only_with_ordered_key_shared_delivery(
    disorder: bool, shown: bool
) -> None:
    subscription = (await kept_topic()).subscriptions().create("s")
    meta = pb.KeySharedMeta(
        keySharedMode=pb.KeySharedMode.AUTO_SPLIT, allowOutOfOrderDelivery=disorder
    )
    consumer, _ = consume(subscription, pb.CommandSubscribe.Key_Shared, key_shared=meta)
    stats = found(consumer_stats(consumer, subscription.dispatcher))
    assert ("drainingHashes" in stats) is shown
    assert stats["keyHashRangeArrays"] == [[1, 65535]]


def consumers(*names: str) -> list[dict[str, Any]]:
    """Return consumers with given names, each with a permit."""
    added = (
        "msgRateOut messageAckRate msgThroughputOut bytesOutCounter msgOutCounter msgRateRedeliver "
        "availablePermits unackedMessages drainingHashesClearedTotal"
    )
    return [{**dict.fromkeys(added.split(), 1), "consumerName": name} for name in names]


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        (["a", "a"], [("a", 2)]),
        (["ab", "a"], [("a", 1), ("b", 1), ("a", 1)]),
        (["", "ab", "cd"], [("c", 2), ("d", 2)]),
    ],
)
def test_consumers_are_merged_by_index_across_partitions_with_equally_many_consumers(
    partitions: list[str], expected: list[tuple[str, int]]
) -> None:
    shown = found(_clients("consumers", [consumers(*names) for names in partitions]))
    assert [(one["consumerName"], one["availablePermits"]) for one in shown] == expected


def test_producers_of_partitions_are_merged_by_index() -> None:
    one = {"msgRateIn": 4.0, "msgThroughputIn": 4.0, "averageMsgSize": 4.0, "producerName": "p"}
    shown = found(_clients("publishers", [[one], [one, one], []]))
    assert [(each["msgRateIn"], each["averageMsgSize"]) for each in shown] == [(8.0, 4.0), (4, 4)]
    assert all("producerName" not in each for each in shown)
