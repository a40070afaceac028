"""Key_Shared: a key has one consumer at a time, and messages of a key keep their order."""

from __future__ import annotations

from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.configuration.config import BrokerConfig
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.subscriptions.key_shared.ranges import murmur
from broker.messages.subscriptions.subscription import Subscription
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import (
    KeptTopic,
    consume,
    dispatched,
    ids,
    kept_topic,
    subscribed_topic,
)
from tests.unit.broker.messages.subscriptions.dispatchers.test_bounded_turns import dispatcher_of

KEY_SHARED = pb.CommandSubscribe.Key_Shared
KEYS = [f"k{number}" for number in range(20)]


def sticky(*ranges: tuple[int, int]) -> pb.KeySharedMeta:
    """Return a STICKY consumer's request."""
    wanted = [pb.IntRange(start=first, end=last) for first, last in ranges]
    return pb.KeySharedMeta(keySharedMode=pb.STICKY, hashRanges=wanted)


OF_LOW, OF_HIGH = (
    next(key for key in KEYS if (murmur(key.encode()) % 65_536 <= 32_767) is is_low)
    for is_low in (True, False)
)
"""Keys of the lower and of the upper half of all hashes."""
LOW, HIGH = sticky((0, 32_767)), sticky((32_768, 65_535))


async def each_key_dispatched(topic: KeptTopic, subscription: Subscription) -> None:
    for key in KEYS:
        topic.publish(key=key)
    await dispatched(subscription)


async def test_keys_are_distributed_and_each_has_a_single_consumer() -> None:
    topic, subscription = await subscribed_topic()
    _, first = consume(subscription, KEY_SHARED, 100, name="a")
    _, second = consume(subscription, KEY_SHARED, 100, name="b")
    for _ in range(2):
        await each_key_dispatched(topic, subscription)
    of_first, of_second = ({one % 20 for one in cnx.entries} for cnx in (first, second))
    assert of_first
    assert of_second
    assert not of_first & of_second
    assert len(first.entries) + len(second.entries) == 40


async def test_a_moved_key_waits_until_its_old_consumer_has_acknowledged() -> None:
    topic, subscription = await subscribed_topic()
    old, old_cnx = consume(subscription, KEY_SHARED, 100, name="a")
    positions = [topic.publish(key=key)[0] for key in KEYS]
    await dispatched(subscription)
    _, new_cnx = consume(subscription, KEY_SHARED, 100, name="b")
    await each_key_dispatched(topic, subscription)
    moved = [one for one in range(20) if one + 20 not in old_cnx.entries]
    before = new_cnx.entries
    subscription.acknowledge(old, ids(*positions))
    await settle()
    assert moved
    assert before == []
    assert new_cnx.entries == [one + 20 for one in moved]


async def test_without_consistent_hashing_a_second_consumer_gets_the_lower_half() -> None:
    properties = {"subscriptionKeySharedUseConsistentHashing": "false"}
    rules = SubscriptionRules.of(BrokerConfig.from_properties(properties))
    topic = await kept_topic()
    subscription = topic.subscriptions(rules).create("s")
    first, _ = consume(subscription, KEY_SHARED, 100, name="alice")
    second, cnx = consume(subscription, KEY_SHARED, 100, name="bob")
    ring = subscription.ring
    assert (ring.ranges(first), ring.ranges(second)) == ([(32769, 65536)], [(0, 32768)])
    await each_key_dispatched(topic, subscription)
    hashes = [murmur(key.encode()) % 65536 for key in KEYS]
    assert cnx.entries == [at for at, one in enumerate(hashes) if one <= 32768]


async def test_messages_of_a_closed_consumer_go_to_another_consumer_in_order() -> None:
    topic, subscription = await subscribed_topic()
    leaver, _ = consume(subscription, KEY_SHARED, 3, name="a")
    for _ in range(3):
        topic.publish(2, key="k")
    subscription.entries_added()
    _, other = consume(subscription, KEY_SHARED, 100, name="b")
    await settle()
    subscription.remove_consumer(leaver)
    await settle()
    assert other.entries == [0, 1, 2, 3, 4, 5]


async def test_a_consumer_without_permits_does_not_stop_other_keys() -> None:
    topic, subscription = await subscribed_topic()
    _, first = consume(subscription, KEY_SHARED, 1, name="a")
    _, second = consume(subscription, KEY_SHARED, 100, name="b")
    await each_key_dispatched(topic, subscription)
    assert len(first.entries) == 1
    assert len(second.entries) + len(dispatcher_of(subscription).replay) == 19
    assert second.entries


async def test_messages_far_behind_a_consumer_without_permits_are_delivered() -> None:
    topic, dispatch = await kept_topic(ledger_entries=50_000), SubscriptionRules().dispatch
    dispatch = replace(dispatch, look_ahead=30_000, look_ahead_per_consumer=30_000)
    subscription = topic.subscriptions(SubscriptionRules(dispatch=dispatch)).create("s")
    topic.publish(20_500, key=OF_LOW)
    topic.publish(3, key=OF_HIGH)
    consume(subscription, KEY_SHARED, key_shared=LOW)
    ready, cnx = consume(subscription, KEY_SHARED, key_shared=sticky((32_768, 65_534)))
    consume(subscription, KEY_SHARED, 100, key_shared=sticky((65_535, 65_535)))  # Makes it read.
    for _ in range(10):
        await settle()
    assert subscription.cursor.at_end
    subscription.flow(ready, 100)
    for _ in range(10):
        await settle()
    assert cnx.entries == [20_500, 20_501, 20_502]


async def test_sticky_consumers_get_their_requested_ranges() -> None:
    topic, subscription = await subscribed_topic()
    _, low = consume(subscription, KEY_SHARED, 100, key_shared=LOW)
    await each_key_dispatched(topic, subscription)
    waiting = len(dispatcher_of(subscription).replay)
    _, high = consume(subscription, KEY_SHARED, 100, key_shared=HIGH)
    await settle()
    assert waiting == 20 - len(low.entries) > 0
    assert len(high.entries) == waiting


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            sticky((0, 10)),
            None,
            "ConsumerBusy: Subscription is of different type. Active subscription key_shared mode "
            "of 'STICKY' is different than the connecting consumer's key_shared mode 'AUTO_SPLIT'.",
        ),
        (
            None,
            pb.KeySharedMeta(keySharedMode=pb.AUTO_SPLIT, allowOutOfOrderDelivery=True),
            "ConsumerBusy: Subscription is of different type. Active subscription does not allow "
            "out of order delivery while the connecting consumer allows it.",
        ),
        (
            sticky((0, 10)),
            sticky(),
            "ConsumerAssignError: Ranges for KeyShared policy must not be empty.",
        ),
    ],
)
async def test_a_consumer_with_an_incompatible_key_shared_policy_is_refused(
    first, second, text
) -> None:
    subscription = (await kept_topic()).subscriptions().create("s")
    consume(subscription, KEY_SHARED, key_shared=first)
    with pytest.raises(RequestError) as refused:
        consume(subscription, KEY_SHARED, key_shared=second)
    assert str(refused.value) == text
    assert len(subscription.consumers) == 1


async def test_a_new_consumer_after_all_were_closed_gets_all_keys_and_messages() -> None:
    # Each of several has some messages
    topic, subscription = await subscribed_topic()
    connected = [consume(subscription, KEY_SHARED, 100, name=f"c{number}") for number in range(5)]
    await each_key_dispatched(topic, subscription)
    assert sum(len(consumer.pending) for consumer, _ in connected) == len(KEYS)
    subscription.close_consumers()
    gone = [subscription.ring.ranges(consumer) for consumer, _ in connected]
    assert (list(subscription.consumers), gone) == ([], [[]] * 5)
    for consumer, cnx in connected:
        assert [one.type for one in cnx.commands][-1:] == [pb.BaseCommand.CLOSE_CONSUMER]
        assert not consumer.pending
    assert subscription.messages_out == len(KEYS)
    newcomer, _ = consume(subscription, KEY_SHARED, 100, name="new")
    await settle()
    assert (len(newcomer.pending), newcomer.unacked) == (len(KEYS), len(KEYS))


async def test_a_due_message_precedes_a_returned_later_message_of_its_key() -> None:
    topic, subscription = await subscribed_topic()
    consumer, cnx = consume(subscription, KEY_SHARED, 1)
    await settle()
    topic.publish(key="k", deliver_at=topic.clock.wall_ms() + 3_000)
    (later,) = topic.publish(key="k")
    await dispatched(subscription)
    assert cnx.take_entries() == [1]
    subscription.redeliver(consumer, ids(later), None)
    topic.clock.advance(5.0)
    subscription.flow(consumer, 10)
    await settle()
    assert cnx.entries == [0, 1]
