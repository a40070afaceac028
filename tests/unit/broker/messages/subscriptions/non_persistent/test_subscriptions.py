"""Subscriptions of a non-persistent topic, as recorded of a real broker."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import parse_metadata
from broker.messages.subscriptions.consumer import Consumer, ConsumerOptions
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.subscriptions.non_persistent.subscriptions import NonPersistentSubscriptions
from broker.policies.effective import DEFAULTS, EffectivePolicies
from proto.names import TopicName
from server.connection.request_errors import RequestError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.subscriptions.recording_client import RecordingClient, entry
from tests.unit.broker.messages.subscriptions.dispatchers.test_key_shared import sticky

Subscribe = pb.CommandSubscribe
SPLIT = pb.KeySharedMeta()
IDS = count(1)


@dataclass
class Topic:
    """A non-persistent topic."""

    name: TopicName = TopicName.parse("non-persistent://t/n/x")  # noqa: RUF009
    policies: EffectivePolicies = DEFAULTS
    clock: ManualClock = field(default_factory=ManualClock)
    rules: SubscriptionRules = field(default_factory=SubscriptionRules)

    def touched(self) -> None:
        """No periodic work visits the topic."""


def subscriptions(**policies: object) -> NonPersistentSubscriptions:
    topic = Topic(policies=replace(DEFAULTS, **policies))
    return NonPersistentSubscriptions(topic)


async def joined(
    there: NonPersistentSubscriptions,
    sub_type: Subscribe.SubType.ValueType = Subscribe.Shared,
    permits: int = 0,
    subscription: str = "s",
    **options: object,
) -> tuple[RecordingClient, Consumer]:
    """Return a client and a subscribed consumer with permits sent."""
    asked = Subscribe(subscription=subscription, subType=sub_type, topic="x", consumer_id=1)
    asked.request_id = 1
    client = RecordingClient()
    opened = await there.open(asked, "127.0.0.1")
    values = {"name": f"c{next(IDS)}", **options}
    consumer = opened.add_consumer(client, ConsumerOptions(1, type=sub_type, **values))
    client.consumers[1] = consumer
    if permits:
        opened.flow(consumer, permits)
    return client, consumer


def publish(there: NonPersistentSubscriptions, messages: int, keys: int = 1) -> None:
    for number in range(messages):
        there.publish(entry(b"m%d" % number, key=f"k{number % keys}"))


async def test_a_subscription_is_found_before_its_first_consumer_is_added() -> None:
    there = subscriptions()
    opened = await there.open(
        Subscribe(subscription="s", subType=Subscribe.Shared, topic="x"), "127.0.0.1"
    )
    assert there.get("s") is opened
    assert "s" not in there


async def test_messages_without_permits_are_dropped_and_consumers_alternate() -> None:
    there = subscriptions()
    (a, _), (b, _), (c, _) = [await joined(there, permits=n) for n in (2, 2, 0)]
    publish(there, 8)
    tails = [[data[-2:] for data in one.messages] for one in (a, b, c)]
    assert tails == [[b"m0", b"m2"], [b"m1", b"m3"], []]
    subscription = there.get("s")
    assert subscription is not None
    assert subscription.messages_dropped == 4


async def test_each_subscription_gets_each_message() -> None:
    there = subscriptions()
    a, _ = await joined(there, permits=9, subscription="s1")
    b, _ = await joined(there, permits=9, subscription="s2")
    publish(there, 3)
    assert len(a.messages) == len(b.messages) == 3


async def test_a_batch_takes_a_permit_for_each_of_its_messages() -> None:
    there = subscriptions()
    client, consumer = await joined(there, permits=3)
    there.publish(entry(b"batch", count=10))
    there.publish(entry(b"lost"))
    assert len(client.messages) == 1
    assert consumer.permits == -7


async def test_a_lower_priority_gets_only_messages_beyond_higher_priority_permits() -> None:
    there = subscriptions()
    low, _ = await joined(there, permits=9, priority_level=1)
    high, _ = await joined(there, permits=2, priority_level=0)
    publish(there, 3)
    assert (len(high.messages), len(low.messages)) == (2, 1)


async def test_a_client_that_does_not_read_misses_messages() -> None:
    there = subscriptions()
    client, _ = await joined(there, permits=9)
    client.outbound.weigh(5)
    client.outbound.became_unwritable()
    publish(there, 3)
    assert client.messages == []


async def test_only_the_active_failover_consumer_gets_messages_and_a_standby_is_notified() -> None:
    # For these two names the topic's ring chooses the first consumer.
    there = subscriptions()
    first, _ = await joined(there, Subscribe.Failover, 9, name="a", priority_level=0)
    second, _ = await joined(there, Subscribe.Failover, 9, name="b", priority_level=1)
    publish(there, 3)
    assert (len(first.messages), len(second.messages)) == (3, 0)
    assert (first.commands, second.commands) == ([], ["ACTIVE_CONSUMER_CHANGE"])
    subscription = there.get("s")
    assert subscription is not None
    subscription.remove_consumer(first.consumers[1])
    publish(there, 3)
    assert len(second.messages) == 3


@pytest.mark.parametrize("options", [{}, {"key_shared": SPLIT}])
async def test_each_key_has_a_single_consumer(options: dict[str, pb.KeySharedMeta]) -> None:
    there = subscriptions()
    clients = [(await joined(there, Subscribe.Key_Shared, 1_000, **options))[0] for _ in range(3)]
    publish(there, 300, keys=30)
    assert sum(len(one.messages) for one in clients) == 300
    heard = [{parse_metadata(data).partition_key for data in one.messages} for one in clients]
    assert sum(len(one) for one in heard) == len(set.union(*heard))
    assert all(heard)


async def test_the_keys_of_a_closed_consumer_move_to_another_consumer() -> None:
    there = subscriptions()
    _, leaving = await joined(there, Subscribe.Key_Shared, 1_000)
    client, _ = await joined(there, Subscribe.Key_Shared, 1_000)
    leaving.subscription.remove_consumer(leaving)
    publish(there, 30, keys=30)
    assert len(client.messages) == 30


async def test_messages_of_unclaimed_keys_are_lost() -> None:
    there = subscriptions()
    client, _ = await joined(there, Subscribe.Key_Shared, 9, key_shared=sticky((0, 0)))
    publish(there, 3)
    assert client.messages == []


async def test_a_consumer_with_conflicting_hash_ranges_is_found() -> None:
    there = subscriptions()
    low, high = sticky((0, 9)), sticky((10, 19))
    _, consumer = await joined(there, Subscribe.Key_Shared, key_shared=low)
    subscription = there.get("s")
    assert subscription is not None
    found = [subscription.conflicting(one) for one in (low, high, pb.KeySharedMeta())]
    assert found == [consumer, None, None]


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (Subscribe.Exclusive, Subscribe.Exclusive, "Exclusive consumer is already connected"),
        (Subscribe.Shared, Subscribe.Failover, "Subscription is of different type."),
    ],
)
async def test_a_consumer_of_an_incompatible_type_is_refused(first, second, text) -> None:
    there = subscriptions()
    await joined(there, first)
    with pytest.raises(RequestError, match=text) as refused:
        await joined(there, second)
    assert refused.value.server_error == pb.ConsumerBusy
    assert there.consumer_count == 1


async def test_a_key_shared_consumer_of_another_mode_is_refused() -> None:
    there = subscriptions()
    await joined(there, Subscribe.Key_Shared, key_shared=SPLIT)
    with pytest.raises(RequestError, match="key_shared mode of 'AUTO_SPLIT' is different"):
        await joined(there, Subscribe.Key_Shared, key_shared=sticky())


@pytest.mark.parametrize(
    ("policies", "text"),
    [
        ({"max_consumers": 1}, "Topic reached max consumers limit"),
        ({"max_consumers_per_subscription": 1}, "Subscription reached max consumers limit"),
    ],
)
async def test_consumers_above_a_policy_limit_are_refused(
    policies: dict[str, int], text: str
) -> None:
    there = subscriptions(**policies)
    await joined(there)
    with pytest.raises(RequestError, match=text):
        await joined(there)


async def test_a_subscription_vanishes_with_its_last_consumer() -> None:
    there = subscriptions()
    client, consumer = await joined(there, permits=9)
    consumer.subscription.remove_consumer(consumer)
    publish(there, 1)
    assert (len(there), client.messages) == (0, [])


async def test_a_refused_consumer_leaves_no_subscription_behind() -> None:
    there = subscriptions()
    with pytest.raises(RequestError, match="must not be empty"):
        await joined(there, Subscribe.Key_Shared, key_shared=sticky())
    gc.collect()
    assert len(there) == len(there._opened) == 0


async def test_a_consumer_added_after_the_last_was_closed_gets_messages() -> None:
    # A client that received the subscription before the only consumer left.
    there = subscriptions()
    _, leaving = await joined(there)
    asked = Subscribe(subscription="s", subType=Subscribe.Shared, topic="x")
    opened = await there.open(asked, "127.0.0.1")
    leaving.subscription.remove_consumer(leaving)
    late = RecordingClient()
    opened.flow(opened.add_consumer(late, ConsumerOptions(1, "late", Subscribe.Shared)), 9)
    other, _ = await joined(there, permits=9)
    publish(there, 2)
    assert len(there) == 1
    assert len(late.messages) == len(other.messages) == 1


async def test_all_consumers_are_closed_with_the_topic() -> None:
    there = subscriptions()
    clients = [(await joined(there, subscription=name))[0] for name in ("s1", "s2")]
    there.close_consumers()
    assert [one.commands for one in clients] == [["CLOSE_CONSUMER"], ["CLOSE_CONSUMER"]]
    assert len(there) == 0


async def test_sent_messages_are_neither_retained_nor_redelivered() -> None:
    there = subscriptions()
    client, consumer = await joined(there, permits=9)
    publish(there, 1)
    subscription = consumer.subscription
    subscription.redeliver(consumer, [], None)
    subscription.acknowledge(consumer, [pb.MessageIdData(ledgerId=0, entryId=0)])
    subscription.acknowledge_cumulatively(consumer, pb.MessageIdData(ledgerId=0, entryId=0))
    assert len(client.messages) == 1
    assert (consumer.unacked, subscription.cursor.backlog) == (0, 0)


async def test_a_failing_subscription_takes_no_message_from_other_subscriptions(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    there = subscriptions()
    _, broken = await joined(there, permits=1, subscription="broken")
    client, _ = await joined(there, permits=1, subscription="good")

    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(broken.subscription, "publish", fail)
    publish(there, 1)
    assert len(client.messages) == 1
    assert "a message of broken of" in caplog.text
