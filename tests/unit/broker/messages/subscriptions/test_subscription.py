"""Acknowledgements, consumers closed by SEEK, and closing topics."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.position import Position
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.subscriptions.dispatchers.dispatcher import TOLD_A_STEP
from broker.messages.subscriptions.subscriptions import RETURN_SECONDS, SAVE_SECONDS
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import (
    KeptConnection,
    consume,
    ids,
    kept_topic,
    subscribed_topic,
)

EXCLUSIVE, FAILOVER = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover
SHARED = pb.CommandSubscribe.Shared


async def test_a_reader_finds_its_cursor_after_a_second_seek() -> None:
    topic = await kept_topic()
    (position,) = topic.publish()
    there = topic.subscriptions()
    reader = there.create("s", durable=False)
    consume(reader, EXCLUSIVE)
    reader.seek(position)
    topic.clock.advance(RETURN_SECONDS - 1)
    again = there.create("s", durable=False)
    consume(again, EXCLUSIVE)
    again.seek(position)
    topic.clock.advance(RETURN_SECONDS - 1)
    assert there.create("s", durable=False).cursor is reader.cursor


async def test_a_failover_reader_that_seeks_is_forgotten() -> None:
    topic = await kept_topic()
    (position,) = topic.publish()
    there = topic.subscriptions()
    reader = there.create("s", durable=False)
    consume(reader, FAILOVER)
    reader.seek(position)
    assert there.get("s") is None


async def test_messages_sent_to_a_consumer_closed_by_a_seek_still_count() -> None:
    topic = await kept_topic()
    subscription = topic.subscriptions().create("s", earliest=True)
    positions = topic.publish(3)
    consume(subscription, FAILOVER, 10)
    topic.clock.advance(1.0)
    await settle()
    subscription.seek(positions[0])
    assert subscription.messages_out == 3


async def test_subscriptions_of_a_closed_topic_no_longer_save_cursors() -> None:
    topic = await kept_topic()
    there = topic.subscriptions()
    subscription = there.create("s")
    positions = topic.publish(2)
    consumer, _ = consume(subscription, EXCLUSIVE, 10)
    subscription.acknowledge(consumer, ids(positions[0]))
    there.close()
    kept = topic.ledger.cursors["s"]
    subscription.acknowledge(consumer, ids(positions[1]))
    topic.clock.advance(SAVE_SECONDS)
    assert topic.ledger.cursors["s"] is kept


@pytest.mark.parametrize(("ends", "backlog"), [(False, 1), (True, 2)])
async def test_in_profile_pulsar_an_id_beyond_the_end_stops_its_acknowledgement_command(
    ends: bool, backlog: int
) -> None:
    topic = await kept_topic()
    there = topic.subscriptions(SubscriptionRules(acks_end_behind_the_end=ends))
    subscription = there.create("s", earliest=True)
    positions = topic.publish(3)
    consumer, _ = consume(subscription, SHARED, 10)
    await settle()
    beyond = Position(positions[0].ledger_id + 1_000, 0)
    subscription.acknowledge(consumer, ids(positions[0], beyond, positions[1]))
    assert subscription.cursor.backlog == backlog
    assert consumer.unacked == 1


async def test_many_closed_consumers_are_notified_in_steps() -> None:
    _, subscription = await subscribed_topic()
    cnx = KeptConnection()
    for _ in range(2 * TOLD_A_STEP):
        consume(subscription, SHARED, cnx=cnx)
    subscription.close_consumers()
    told = [one.close_consumer.consumer_id for one in cnx.commands]
    # No consumer holds the entries any more, and an id may be reused immediately
    assert (told, cnx.consumers) == (list(range(1, TOLD_A_STEP + 1)), {})
    cnx.consumers[TOLD_A_STEP + 1] = object()  # type: ignore[assignment]
    await settle()
    told = [one.close_consumer.consumer_id for one in cnx.commands]
    assert told[TOLD_A_STEP:] == list(range(TOLD_A_STEP + 2, 2 * TOLD_A_STEP + 1))


@pytest.mark.parametrize("how", ["skip", "seek", "delete"])
async def test_forgotten_partial_batches_are_freed_in_steps(how: str) -> None:
    count = 4_000
    topic, subscription = await subscribed_topic(ledger_entries=count)
    positions = topic.publish(count, batch=2)
    consumer, _ = consume(subscription, SHARED)
    subscription.acknowledge(consumer, ids(*positions, ack_set=[0b10]))
    batches = subscription.cursor.batches
    if how == "skip":
        subscription.skip(count)
    elif how == "seek":
        subscription.seek(positions[0])
    else:
        subscription.delete()
    assert (len(batches), len(batches.gone)) == (0, 2 if how == "skip" else 3)
    await settle()
    assert not batches.gone


async def test_many_consumers_are_notified_of_the_end_in_steps_except_closed_consumers() -> None:
    _, subscription = await subscribed_topic()
    cnx = KeptConnection()
    consumers = [consume(subscription, SHARED, cnx=cnx)[0] for _ in range(2 * TOLD_A_STEP)]
    subscription.tell_end()
    first = [one.reached_end for one in consumers].count(True)
    subscription.remove_consumer(consumers[-1])
    await settle()
    assert first == TOLD_A_STEP
    assert [one.reached_end for one in consumers[-3:]] == [True, True, False]
