"""Exclusive and Failover: one consumer receives all messages, in order."""

from collections.abc import Sequence

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.subscriptions.consumer import Consumer
from broker.messages.subscriptions.dispatchers import single_active
from broker.messages.subscriptions.dispatchers.single_active import FailoverDispatcher, active_of
from broker.messages.subscriptions.key_shared.ranges import FixedRanges
from proto.names import TopicName
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import consume, dispatched, ids, kept_topic, subscribed_topic
from tests.unit.broker.messages.subscriptions.dispatchers.test_key_shared import LOW, sticky

EXCLUSIVE, FAILOVER = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover


async def test_an_exclusive_consumer_gets_as_many_messages_as_permits() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(5)
    consumer, cnx = consume(subscription, EXCLUSIVE, 3)
    await settle()
    assert (cnx.entries, consumer.permits) == ([0, 1, 2], 0)


async def test_from_a_backlog_as_many_batches_are_sent_as_permits() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(5, batch=3)
    consumer, cnx = consume(subscription, EXCLUSIVE, 2)
    await settle()
    assert (cnx.entries, consumer.permits) == ([0, 1], -4)


async def test_after_a_wait_the_first_batch_is_read_alone() -> None:
    topic, subscription = await subscribed_topic()
    consumer, cnx = consume(subscription, EXCLUSIVE, 2)
    await settle()
    topic.publish(3, batch=3)
    await dispatched(subscription)
    assert (cnx.entries, consumer.permits) == ([0], -1)


async def test_a_second_exclusive_consumer_is_refused() -> None:
    subscription = (await kept_topic()).subscriptions().create("s")
    consume(subscription, EXCLUSIVE)
    with pytest.raises(RequestError) as refused:
        consume(subscription, EXCLUSIVE)
    assert str(refused.value) == "ConsumerBusy: Exclusive consumer is already connected"


async def test_unacknowledged_messages_are_redelivered_without_a_count() -> None:
    topic, subscription = await subscribed_topic()
    first, second, _ = topic.publish(3)
    consumer, cnx = consume(subscription, EXCLUSIVE, 10)
    await settle()
    subscription.acknowledge(consumer, ids(second))
    cnx.take_entries()
    subscription.redeliver(consumer, ids(first), None)
    await settle()
    assert [one.redelivery_count for one in cnx.messages] == [0, 0]
    assert cnx.entries == [0, 2]


async def test_a_consumer_with_a_blocked_connection_is_served_once_unblocked() -> None:
    topic, subscription = await subscribed_topic()
    consumer, cnx = consume(subscription, EXCLUSIVE)
    cnx.block()
    topic.publish(2)
    subscription.flow(consumer, 5)
    await settle()
    before = cnx.entries
    cnx.unblock()
    await settle()
    assert (before, cnx.entries) == ([], [0, 1])


def told(cnx_commands: list[pb.BaseCommand]) -> list[bool]:
    """Return the active-consumer changes sent to a Failover consumer."""
    kind = pb.BaseCommand.ACTIVE_CONSUMER_CHANGE
    return [one.active_consumer_change.is_active for one in cnx_commands if one.type == kind]


async def test_the_active_consumer_is_notified_and_served_only_after_the_delay() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(2)
    _, cnx = consume(subscription, FAILOVER, 10)
    await settle()
    before = (told(cnx.commands), cnx.entries)
    topic.clock.advance(1.0)
    await settle()
    assert before == ([], [])
    assert (told(cnx.commands), cnx.entries) == ([True], [0, 1])


async def test_a_consumer_joining_during_the_delay_is_notified_at_its_end() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(1)
    consumer, _ = consume(subscription, FAILOVER, 10)
    topic.clock.advance(0.6)
    # All consumers leave, and one joins
    subscription.remove_consumer(consumer)
    _, cnx = consume(subscription, FAILOVER, 10)
    topic.clock.advance(0.4)
    await settle()
    assert (told(cnx.commands), cnx.entries) == ([True], [0])


async def test_a_change_due_without_consumers_is_not_sent_to_a_later_consumer() -> None:
    topic, subscription = await subscribed_topic()
    subscription.remove_consumer(consume(subscription, FAILOVER)[0])
    topic.clock.advance(1.0)
    _, cnx = consume(subscription, FAILOVER)
    heard = told(cnx.commands)
    topic.clock.advance(1.0)
    assert (heard, told(cnx.commands)) == ([], [True])


async def test_a_passive_failover_consumer_is_notified() -> None:
    # The topic's hash ring chooses between "a" and "b"; the other consumer is passive
    topic, subscription = await subscribed_topic()
    consumers = {}
    for name in ("b", "a"):
        consumers[name] = consume(subscription, FAILOVER, name=name)[1]
        topic.clock.advance(1.0)
    heard = {name: told(cnx.commands) for name, cnx in consumers.items()}
    assert sorted(heard.values()) in ([[False], [True]], [[True], [True, False]])


async def test_the_next_active_consumer_gets_the_unacknowledged_messages() -> None:
    topic, subscription = await subscribed_topic()
    connected = [consume(subscription, FAILOVER, 10, name=name) for name in ("a", "b")]
    topic.clock.advance(1.0)
    positions = topic.publish(3)
    await dispatched(subscription)
    (active, _), (_, standby) = sorted(connected, key=lambda one: not one[1].entries)
    subscription.acknowledge_cumulatively(active, ids(positions[0])[0])
    subscription.remove_consumer(active)
    topic.clock.advance(1.0)
    await settle()
    assert (standby.entries, told(standby.commands)[-1]) == ([1, 2], True)


async def test_closing_a_standby_consumer_causes_no_new_choice(monkeypatch) -> None:
    # A choice among a thousand takes a moment
    subscription = (await kept_topic()).subscriptions().create("s")
    for number in range(20):
        consume(subscription, FAILOVER, 10, name=f"c{number}")
    dispatcher = subscription.dispatcher
    assert isinstance(dispatcher, FailoverDispatcher)
    active, choices = dispatcher.active, 0

    def counted(consumers: Sequence[Consumer], topic: TopicName) -> int:
        nonlocal choices
        choices += 1
        return active_of(consumers, topic)

    monkeypatch.setattr(single_active, "active_of", counted)
    for consumer in [one for one in dispatcher.consumers if one is not active][1:]:
        subscription.remove_consumer(consumer)
    assert (dispatcher.active, choices) == (active, 0)
    assert active is not None
    subscription.remove_consumer(active)
    assert (list(dispatcher.consumers), choices) == ([dispatcher.active], 1)


async def test_a_seek_closes_only_the_active_consumer_and_waits_for_its_return() -> None:
    topic, subscription = await subscribed_topic()
    connected = [consume(subscription, FAILOVER, 10, name=name) for name in ("a", "b")]
    topic.clock.advance(1.0)
    positions = topic.publish(2)
    await dispatched(subscription)
    (active, cnx), (_, standby) = sorted(connected, key=lambda one: not one[1].entries)
    subscription.seek(positions[1])
    topic.clock.advance(5.0)
    await settle()
    kinds = [one.type for one in cnx.commands]
    assert kinds[-1] == pb.BaseCommand.CLOSE_CONSUMER
    assert (standby.entries, active in subscription.consumers) == ([], False)
    # When the consumer returns
    _, again = consume(subscription, FAILOVER, 10, name=active.name)
    topic.clock.advance(1.0)
    await settle()
    assert again.entries == [1]


async def test_an_exclusive_consumer_with_hash_ranges_gets_only_messages_of_their_keys() -> None:
    topic, subscription = await subscribed_topic()
    keys = [f"k{number}" for number in range(10)]
    for key in keys:
        topic.publish(key=key)
    consumer, cnx = consume(subscription, EXCLUSIVE, 10, key_shared=LOW)
    await settle()
    mine = [at for at, key in enumerate(keys) if FixedRanges.hash_of(key.encode()) < 32_768]
    assert 0 < len(mine) < 10
    assert (cnx.entries, consumer.permits) == (mine, 10 - len(mine))


async def test_the_next_exclusive_consumer_without_ranges_gets_all_messages() -> None:
    topic, subscription = await subscribed_topic()
    consumer, _ = consume(subscription, EXCLUSIVE, 10, key_shared=sticky((1, 1)))
    subscription.remove_consumer(consumer)
    topic.publish(3)
    _, cnx = consume(subscription, EXCLUSIVE, 10)
    await settle()
    assert cnx.entries == [0, 1, 2]
