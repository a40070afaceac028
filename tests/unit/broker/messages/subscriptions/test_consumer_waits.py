"""Statistics name the reason a consumer receives no messages."""

from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.position import EARLIEST
from broker.messages.subscriptions import delayed
from broker.messages.subscriptions.context import SubscriptionRules, Waits
from broker.messages.subscriptions.dispatchers import key_shared
from broker.policies.effective import DEFAULTS, Rate
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import consume, dispatched, ids, kept_topic, subscribed_topic
from tests.unit.broker.messages.subscriptions.dispatchers.test_key_shared import (
    HIGH,
    KEYS,
    LOW,
    OF_HIGH,
    OF_LOW,
)

SubType = pb.CommandSubscribe


@pytest.mark.parametrize("kind", [SubType.Exclusive, SubType.Shared, SubType.Key_Shared])
async def test_a_consumer_waits_for_permits_then_a_writable_connection_then_messages(
    kind: SubType.SubType.ValueType,
) -> None:
    topic, subscription = await subscribed_topic()
    consumer, cnx = consume(subscription, kind)
    topic.publish(3)
    subscription.entries_added()
    assert subscription.dispatcher.waits(consumer) is Waits.PERMITS
    cnx.block()
    subscription.flow(consumer, 10)
    await settle()
    assert subscription.dispatcher.waits(consumer) is Waits.WRITABLE
    cnx.unblock()
    await settle()
    assert cnx.entries == [0, 1, 2]
    assert subscription.dispatcher.waits(consumer) is Waits.NOTHING_LEFT


async def test_a_failover_consumer_waits_for_the_change_or_the_active_consumer() -> None:
    topic, subscription = await subscribed_topic()
    for name in "ab":
        consume(subscription, SubType.Failover, 1, name=name)

    def waits() -> set[Waits | None]:
        return {subscription.dispatcher.waits(one) for one in subscription.consumers}

    assert waits() == {Waits.CHANGE, Waits.ACTIVE_CONSUMER}
    topic.clock.advance(1)
    assert waits() == {Waits.NOTHING_LEFT, Waits.ACTIVE_CONSUMER}
    subscription.seek(EARLIEST)
    assert waits() == {Waits.NO_ACTIVE_CONSUMER}


@pytest.mark.parametrize(
    ("limits", "waits"),
    [
        ({"max_unacked_per_consumer": 2}, Waits.ACKNOWLEDGEMENTS),
        ({"max_unacked_per_subscription": 2}, Waits.SUBSCRIPTION),
        ({"dispatch_rate": Rate(2), "subscription_dispatch_rate": Rate(2)}, Waits.RATE),
    ],
)
async def test_a_consumer_at_a_limit_waits_for_acknowledgements_or_the_rate(
    limits: dict[str, object], waits: Waits
) -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, **limits))
    topic.publish(200)
    consumer, cnx = consume(subscription, SubType.Shared, 150)
    await settle()
    assert len(cnx.entries) < 150
    assert subscription.dispatcher.waits(consumer) is waits


async def test_a_dispatch_rate_is_no_reason_to_wait_without_messages() -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, dispatch_rate=Rate(2)))
    topic.publish(2)
    consumer, cnx = consume(subscription, SubType.Shared, 10)
    await settle()
    assert len(cnx.entries) == 2
    assert subscription.dispatcher.waits(consumer) is Waits.NOTHING_LEFT


async def test_a_consumer_waits_for_the_delay_while_reading_is_paused(monkeypatch) -> None:
    monkeypatch.setattr(delayed, "FIXED_DELAY_LOOK_AHEAD", 5)
    topic, subscription = await subscribed_topic()
    consumer, _ = consume(subscription, SubType.Shared, 5)
    topic.publish(20, deliver_at=topic.clock.wall_ms() + 60_000)
    await dispatched(subscription)
    assert not subscription.cursor.at_end
    assert subscription.dispatcher.waits(consumer) is Waits.DELAY


async def test_a_consumer_with_only_delayed_messages_waits_for_the_delay() -> None:
    topic, subscription = await subscribed_topic()
    consumer, _ = consume(subscription, SubType.Shared, 10)
    topic.publish(deliver_at=topic.clock.wall_ms() + 60_000)
    await dispatched(subscription)
    assert subscription.dispatcher.waits(consumer) is Waits.DELAY


async def test_a_key_shared_consumer_waits_for_draining_keys_then_other_keys() -> None:
    topic, subscription = await subscribed_topic()
    old, _ = consume(subscription, SubType.Key_Shared, 20, name="a")
    positions = [topic.publish(key=key)[0] for key in KEYS]
    await dispatched(subscription)
    new, cnx = consume(subscription, SubType.Key_Shared, 100, name="b")
    for key in KEYS:
        topic.publish(key=key)
    await dispatched(subscription)
    assert subscription.dispatcher.waits(old) is Waits.PERMITS
    assert subscription.dispatcher.waits(new) is Waits.DRAINING
    subscription.acknowledge(old, ids(*positions))
    await settle()
    assert cnx.entries
    assert subscription.dispatcher.waits(new) is Waits.OTHER_KEYS


async def test_a_key_shared_consumer_waits_for_a_draining_key_behind_many_other_keys(
    monkeypatch,
) -> None:
    monkeypatch.setattr(key_shared, "HASHES_A_LOOK", 3)
    topic, subscription = await subscribed_topic()
    old, _ = consume(subscription, SubType.Key_Shared, 20, name="a")
    positions = {key: topic.publish(key=key)[0] for key in KEYS}
    await dispatched(subscription)
    new, _ = consume(subscription, SubType.Key_Shared, 100, name="b")
    ring = subscription.ring
    kept = [key for key in KEYS if ring.select(ring.hash_of(key.encode())) is old]
    drained = next(key for key in KEYS if key not in kept)
    subscription.acknowledge(old, ids(*(at for key, at in positions.items() if key != drained)))
    for key in (*kept, drained):
        topic.publish(key=key)
    await dispatched(subscription)
    assert len(kept) > 3
    assert subscription.dispatcher.waits(new) is Waits.DRAINING


async def test_a_key_shared_consumer_waits_for_other_keys_although_a_message_is_delayed() -> None:
    topic, subscription = await subscribed_topic()
    consume(subscription, SubType.Key_Shared, key_shared=LOW)
    consumer, _ = consume(subscription, SubType.Key_Shared, 10, key_shared=HIGH)
    topic.publish(key=OF_LOW)
    topic.publish(deliver_at=topic.clock.wall_ms() + 60_000)
    await dispatched(subscription)
    assert subscription.dispatcher.waits(consumer) is Waits.OTHER_KEYS


async def test_the_unacknowledged_limit_precedes_waiting_messages_of_other_keys() -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, max_unacked_per_subscription=5))
    consume(subscription, SubType.Key_Shared, key_shared=LOW)
    consumer, cnx = consume(subscription, SubType.Key_Shared, 150, key_shared=HIGH)
    topic.publish(3, key=OF_LOW)
    topic.publish(197, key=OF_HIGH)
    await dispatched(subscription)
    assert 0 < len(cnx.entries) < 150
    assert subscription.dispatcher.waits(consumer) is Waits.SUBSCRIPTION


async def test_a_consumer_waits_for_an_exhausted_look_ahead() -> None:
    topic = await kept_topic()
    subscription = topic.subscriptions(
        SubscriptionRules(dispatch=replace(SubscriptionRules().dispatch, look_ahead=5))
    ).create("s")
    consume(subscription, SubType.Key_Shared, key_shared=LOW)
    consumer, _ = consume(subscription, SubType.Key_Shared, 10, key_shared=HIGH)
    topic.publish(5, key=OF_LOW)
    await dispatched(subscription)
    assert subscription.dispatcher.waits(consumer) is Waits.OTHER_KEYS
    topic.publish(50, key=OF_LOW)
    await dispatched(subscription)
    assert subscription.dispatcher.waits(consumer) is Waits.LOOK_AHEAD


async def test_unclaimed_keys_are_reported_as_the_reason_a_consumer_waits() -> None:
    topic, subscription = await subscribed_topic()
    consumer, _ = consume(subscription, SubType.Key_Shared, 10, key_shared=LOW)
    topic.publish(key=OF_HIGH)
    await dispatched(subscription)
    assert subscription.dispatcher.waits(consumer) is Waits.FREE_KEYS
