"""Shared: round-robin consumers, redelivery, limits of unacknowledged messages, delays."""

import gc
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.subscriptions.dispatchers import dispatcher, holding
from broker.messages.subscriptions.dispatchers.holding import HASH_BITS, LEAVING_A_TURN
from broker.messages.subscriptions.dispatchers.shared import LOOK_AGAIN_SECONDS
from broker.messages.subscriptions.subscription import Subscription
from broker.policies.effective import DEFAULTS, Rate
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import consume, dispatched, ids, kept_topic, subscribed_topic
from tests.unit.broker.messages.subscriptions.dispatchers.test_bounded_turns import dispatcher_of

SHARED = pb.CommandSubscribe.Shared


async def test_a_consumer_gets_at_most_twenty_messages_before_the_next_consumer() -> None:
    topic, subscription = await subscribed_topic(ledger_entries=100)
    topic.publish(60)
    # Both consumers have permits before the first delivery
    _, first = consume(subscription, SHARED, 30)
    _, second = consume(subscription, SHARED, 30)
    await settle()
    assert first.entries == [*range(20), *range(40, 50)]
    assert second.entries == [*range(20, 40), *range(50, 60)]


async def test_single_messages_alternate_between_consumers() -> None:
    topic, subscription = await subscribed_topic()
    _, first = consume(subscription, SHARED, 10)
    _, second = consume(subscription, SHARED, 10)
    await settle()
    for _ in range(4):
        topic.publish()
        await dispatched(subscription)
    assert (first.entries, second.entries) == ([0, 2], [1, 3])


async def test_a_batch_is_sent_whole_and_permits_become_negative() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(4, batch=10)
    consumer, cnx = consume(subscription, SHARED, 25)
    await settle()
    assert (cnx.entries, consumer.permits, consumer.unacked) == ([0, 1, 2], -5, 30)


async def test_permits_are_divided_by_the_mean_batch_size_of_a_read() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(2, batch=3)
    topic.publish(1)
    # 5 permits for entries of 3, 3 and 1 messages, 2 in the mean
    consumer, cnx = consume(subscription, SHARED, 5)
    await settle()
    assert (cnx.entries, consumer.permits) == ([0, 1, 2], -2)


async def test_a_read_after_a_wait_ends_with_the_first_entry_of_a_ledger() -> None:
    topic, subscription = await subscribed_topic()
    _, cnx = consume(subscription, pb.CommandSubscribe.Key_Shared, 2)
    await settle()
    topic.publish(3, batch=3)
    await dispatched(subscription)
    assert cnx.entries == [0]


async def test_a_lower_priority_gets_messages_only_without_higher_priority_permits() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(7)
    high, first = consume(subscription, SHARED, 3, priority=0)
    _, second = consume(subscription, SHARED, 3, priority=1)
    await settle()
    subscription.flow(high, 1)
    await settle()
    assert (first.entries, second.entries) == ([0, 1, 2, 6], [3, 4, 5])


async def test_released_messages_are_redelivered_with_a_count_before_new_messages() -> None:
    topic, subscription = await subscribed_topic()
    positions = topic.publish(4)
    consumer, cnx = consume(subscription, SHARED, 2)
    await settle()
    cnx.take_entries()
    # A repeated position, and a position not held by the consumer
    subscription.redeliver(consumer, ids(positions[0], positions[0], positions[3]), None)
    subscription.flow(consumer, 2)
    await settle()
    assert [(one.message_id.entryId, one.redelivery_count) for one in cnx.messages] == [
        (0, 1),
        (2, 0),
    ]


async def test_acknowledging_part_of_a_batch_resets_its_redelivery_count() -> None:
    # A batch waiting for redelivery
    topic, subscription = await subscribed_topic()
    positions = topic.publish(batch=3)
    consumer, cnx = consume(subscription, SHARED, 2)
    await settle()
    subscription.redeliver(consumer, [], None)
    await settle()
    cnx.take_entries()
    subscription.acknowledge(consumer, ids(positions[0], ack_set=[0b011]))
    subscription.flow(consumer, 9)
    await settle()
    assert [(one.redelivery_count, list(one.ack_set)) for one in cnx.messages] == [(0, [0b011])]


async def test_messages_of_a_closed_consumer_are_resent_with_an_unchanged_count() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(2)
    leaver, _ = consume(subscription, SHARED, 2)
    await settle()
    _, other = consume(subscription, SHARED, 5)
    subscription.remove_consumer(leaver)
    await settle()
    assert [(one.message_id.entryId, one.redelivery_count) for one in other.messages] == [
        (0, 0),
        (1, 0),
    ]


async def test_redelivery_counts_are_forgotten_when_all_consumers_are_closed() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(1)
    consumer, _ = consume(subscription, SHARED, 5)
    await settle()
    subscription.redeliver(consumer, [], None)
    await settle()
    subscription.remove_consumer(consumer)
    _, next_one = consume(subscription, SHARED, 5)
    await settle()
    assert [one.redelivery_count for one in next_one.messages] == [0]


async def test_an_acknowledgement_by_another_consumer_counts_for_the_holder() -> None:
    topic, subscription = await subscribed_topic()
    (position,) = topic.publish(1)
    holder, _ = consume(subscription, SHARED, 1)
    other, _ = consume(subscription, SHARED)
    await settle()
    subscription.acknowledge(other, ids(position))
    assert (holder.unacked, subscription.cursor.backlog) == (0, 0)


async def test_a_partly_acknowledged_batch_is_redelivered_with_its_remaining_ack_set() -> None:
    topic, subscription = await subscribed_topic()
    (position,) = topic.publish(1, batch=4)
    consumer, cnx = consume(subscription, SHARED, 20)
    await settle()
    subscription.acknowledge(consumer, ids(position, ack_set=[0b1100]))
    held = consumer.unacked
    subscription.redeliver(consumer, [], None)
    await settle()
    last = cnx.messages[-1]
    assert (held, list(last.ack_set), last.redelivery_count) == (2, [0b1100], 1)
    assert (consumer.permits, consumer.unacked) == (20 - 4 - 2, 2)


async def test_a_consumer_at_its_unacknowledged_limit_waits_until_half_is_acknowledged() -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, max_unacked_per_consumer=5))
    positions = topic.publish(10)
    consumer, cnx = consume(subscription, SHARED, 100)
    await settle()
    at_limit = (cnx.entries, consumer.blocked)
    subscription.acknowledge(consumer, ids(*positions[:2]))
    await settle()
    still = (len(cnx.entries), consumer.blocked)
    subscription.acknowledge(consumer, ids(positions[2]))
    await settle()
    assert at_limit == ([0, 1, 2, 3, 4], True)
    assert still == (5, True)
    assert (len(cnx.entries), consumer.blocked) == (8, True)


async def test_a_lifted_unacknowledged_limit_unblocks_the_consumer() -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, max_unacked_per_consumer=2))
    topic.publish(4)
    consumer, cnx = consume(subscription, SHARED, 100)
    await settle()
    before = cnx.entries
    topic.policies = replace(DEFAULTS, max_unacked_per_consumer=0)
    subscription.policies_changed()
    await settle()
    assert (before, cnx.entries, consumer.blocked) == ([0, 1], [0, 1, 2, 3], False)


async def test_a_subscription_at_its_unacknowledged_limit_reads_no_new_messages() -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, max_unacked_per_subscription=4))
    topic.publish(10)
    one, first = consume(subscription, SHARED, 4)
    await settle()
    _, second = consume(subscription, SHARED, 100)
    await settle()
    before = second.entries
    # Messages waiting for redelivery still are
    subscription.remove_consumer(one)
    await settle()
    assert (first.entries, before) == ([0, 1, 2, 3], [])
    assert second.entries[:4] == [0, 1, 2, 3]


async def test_a_delayed_message_waits_for_a_turn_of_the_timer_wheel() -> None:
    # Messages due within the next tick are sent immediately (recorded)
    topic = await kept_topic()
    now_ms = topic.clock.wall_ms()
    subscription = topic.subscriptions().create("s")
    topic.publish(1, deliver_at=now_ms + 700)
    topic.publish(1, deliver_at=now_ms + 3_300)
    topic.publish(1)
    _, cnx = consume(subscription, SHARED, 10)
    await settle()
    before = cnx.entries
    topic.clock.advance(4.0)
    await settle()
    assert (before, cnx.entries) == ([0, 2], [0, 2, 1])


@pytest.mark.parametrize("tick_ms", [0, -5])
async def test_a_policy_without_a_tick_delivers_each_message_at_its_time(tick_ms: int) -> None:
    topic = await kept_topic(replace(DEFAULTS, delayed_tick_ms=tick_ms))
    now_ms = topic.clock.wall_ms()
    subscription = topic.subscriptions().create("s")
    topic.publish(1, deliver_at=now_ms + 1_500)
    topic.publish(1)
    _, cnx = consume(subscription, SHARED, 10)
    await settle()
    assert cnx.entries == [1]
    topic.clock.advance(1.4)
    await settle()
    assert cnx.entries == [1]
    topic.clock.advance(0.11)
    await settle()
    assert cnx.entries == [1, 0]


def counts(subscription: Subscription) -> tuple[int, int]:
    """Return the numbers of messages shown as delayed, and as waiting for redelivery."""
    dispatcher = dispatcher_of(subscription)
    return len(dispatcher.delayed), len(dispatcher.replay)


async def test_a_due_message_counts_as_delayed_until_a_consumer_has_permits() -> None:
    topic, subscription = await subscribed_topic()
    for _ in range(3):
        topic.publish(1, deliver_at=topic.clock.wall_ms() + 3_000)
    consumer, cnx = consume(subscription, SHARED, 1)
    await settle()
    topic.publish(1)
    await dispatched(subscription)
    topic.clock.advance(4.0)
    await settle()
    without_permits = counts(subscription)
    subscription.flow(consumer, 1)
    await settle()
    with_one = counts(subscription)
    subscription.flow(consumer, 5)
    topic.clock.advance(0.0)
    await settle()
    assert (without_permits, with_one, counts(subscription)) == ((3, 0), (2, 0), (0, 0))
    assert cnx.entries == [3, 0, 1, 2]


async def test_delayed_messages_stay_counted_without_consumers_until_the_next_consumer() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(1, deliver_at=topic.clock.wall_ms() + 60_000)
    consumer, _ = consume(subscription, SHARED, 1)
    await settle()
    subscription.remove_consumer(consumer)
    await settle()
    nobody = counts(subscription)
    consume(subscription, SHARED, 0)
    await settle()
    assert (nobody, counts(subscription)) == ((1, 0), (0, 0))
    topic.clock.advance(120.0)  # No timer of the first reading is left.
    await settle()
    assert counts(subscription) == (0, 0)


@pytest.mark.parametrize("set_by", [3_600, -3_600, -100, 100])
async def test_a_delayed_message_follows_a_changed_wall_clock(set_by: int) -> None:
    topic = await kept_topic()
    due_ms = topic.clock.wall_ms() + 600_000
    subscription = topic.subscriptions().create("s")
    topic.publish(1, deliver_at=due_ms)
    _, cnx = consume(subscription, SHARED, 10)
    await settle()
    topic.clock.advance(60)
    topic.clock.set_wall(set_by)
    waited = 0
    while not cnx.entries and waited < 5_000:
        topic.clock.advance(1)
        await settle()
        waited += 1
    tick, late = 1, LOOK_AGAIN_SECONDS
    left = max(0, 540 - set_by)
    assert left - tick <= waited <= left + late + tick
    assert waited < late + tick or abs(topic.clock.wall_ms() - due_ms) <= 2_000


async def test_a_changed_tick_applies_to_delayed_messages() -> None:
    topic, subscription = await subscribed_topic()
    consume(subscription, SHARED, 10)
    topic.policies = replace(DEFAULTS, delayed_tick_ms=50)
    subscription.policies_changed()
    assert dispatcher_of(subscription).delayed.tick_ms == 50


async def test_a_dispatch_rate_bounds_the_messages_of_each_second() -> None:
    policies = replace(DEFAULTS, subscription_dispatch_rate=Rate(5, -1, 1))
    topic, subscription = await subscribed_topic(policies)
    topic.publish(20)
    _, cnx = consume(subscription, SHARED, 100)
    await settle()
    at_once = len(cnx.entries)
    topic.clock.advance(1.0)
    await settle()
    assert at_once == 5
    assert 8 <= len(cnx.entries) <= 10


async def test_a_rate_of_the_subscription_overrides_the_general_rate() -> None:
    rates = {"s": Rate(2, -1, 1)}
    policies = replace(DEFAULTS, subscription_dispatch_rate=Rate(5, -1, 1), dispatch_rates=rates)
    topic, subscription = await subscribed_topic(policies)
    topic.publish(20)
    _, cnx = consume(subscription, SHARED, 100)
    await settle()
    assert len(cnx.entries) == 2


async def test_a_consumer_that_does_not_read_does_not_delay_another_consumer() -> None:
    topic, subscription = await subscribed_topic()
    _, stuck = consume(subscription, SHARED, 10)
    stuck.block()
    _, other = consume(subscription, SHARED, 2)
    topic.publish(4)
    await dispatched(subscription)
    before = (stuck.entries, other.entries)
    stuck.unblock()
    await settle()
    assert (before, stuck.entries) == (([], [0, 1]), [2, 3])


async def test_many_released_messages_leave_their_consumer_over_several_turns() -> None:
    count = 3 * LEAVING_A_TURN
    topic, subscription = await subscribed_topic(ledger_entries=count)
    topic.publish(count)
    consumer, cnx = consume(subscription, SHARED, count)
    while consumer.unacked < count:
        await settle()
    dispatcher = dispatcher_of(subscription)
    cnx.take_entries()
    subscription.redeliver(consumer, [], None)
    dispatcher.run()
    assert count - consumer.unacked == LEAVING_A_TURN
    subscription.flow(consumer, count)
    for _ in range(10):
        await settle()
    assert cnx.entries == list(range(count))


async def test_repeated_releases_of_all_messages_do_not_delay_their_redelivery() -> None:
    count = 2 * LEAVING_A_TURN
    topic, subscription = await subscribed_topic(ledger_entries=count)
    positions = topic.publish(count)
    consumer, cnx = consume(subscription, SHARED, count)
    while consumer.unacked < count:
        await settle()
    dispatcher = dispatcher_of(subscription)
    cnx.take_entries()
    # The whole range, and parts, many times
    for _ in range(100):
        subscription.redeliver(consumer, [], None)
        subscription.redeliver(consumer, ids(*positions[:5]), None)
    subscription.flow(consumer, count)
    dispatcher.run()
    dispatcher.run()
    dispatcher.run()
    # Two turns for leaving, one for delivery, each with a spare turn
    await settle()
    assert cnx.messages[0].redelivery_count == 1
    assert cnx.entries[:5] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", [SHARED, pb.CommandSubscribe.Exclusive])
async def test_large_messages_end_a_dispatch_turn_sooner(kind, monkeypatch) -> None:
    # Each large message is as much work as many small messages
    monkeypatch.setattr(dispatcher, "BYTES_AS_AN_ENTRY", 1)
    topic, subscription = await subscribed_topic(ledger_entries=1_000)
    topic.publish(250)
    consumer, _ = consume(subscription, kind, 250)
    assert subscription.dispatcher is not None
    # Entries of one read are dispatched together
    subscription.dispatcher.run()
    assert consumer.messages_out == dispatcher.READ_ENTRIES
    await settle()
    assert consumer.messages_out == 250


async def test_messages_acknowledged_before_their_release_are_not_redelivered() -> None:
    topic, subscription = await subscribed_topic()
    positions = topic.publish(3)
    consumer, cnx = consume(subscription, SHARED, 100)
    await settle()
    subscription.redeliver(consumer, [], None)
    subscription.acknowledge(consumer, ids(positions[1]))
    await settle()
    assert [one.message_id.entryId for one in cnx.messages] == [0, 1, 2, 0, 2]


async def test_the_garbage_collector_does_not_track_pending_messages() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(10)
    consumer, _ = consume(subscription, SHARED, 100)
    await settle()
    subscription.redeliver(consumer, [], None)
    await settle()
    gc.collect()
    # Looking at a million of them would block the event loop
    shared = dispatcher_of(subscription)
    maps = (consumer.pending, shared._holders, shared._redeliveries)
    assert [len(one) for one in maps] == [10, 10, 10]
    assert not any(gc.is_tracked(piece) for one in maps for piece in one._pieces.values())


async def test_a_redelivered_message_can_be_released_again() -> None:
    # The first of two messages was released, and acknowledged before redelivery
    topic, subscription = await subscribed_topic()
    positions = topic.publish(3)
    consumer, cnx = consume(subscription, SHARED, 3)
    await settle()
    subscription.redeliver(consumer, ids(*positions[:2]), None)
    subscription.acknowledge(consumer, ids(positions[0]))
    cnx.take_entries()
    subscription.redeliver(consumer, [], None)
    subscription.flow(consumer, 10)
    await settle()
    subscription.redeliver(consumer, ids(positions[1]), None)
    await settle()
    assert [(one.message_id.entryId, one.redelivery_count) for one in cnx.messages] == [
        (1, 1),
        (2, 1),
        (1, 2),
    ]


async def test_a_skipped_message_is_no_longer_held_by_its_consumer() -> None:
    topic, subscription = await subscribed_topic()
    topic.publish(3)
    consumer, cnx = consume(subscription, SHARED, 2)
    await settle()
    subscription.skip(3)
    await settle()
    held = consumer.unacked
    subscription.redeliver(consumer, [], None)
    subscription.flow(consumer, 5)
    await settle()
    assert (held, cnx.entries) == (0, [0, 1])


async def test_the_cost_of_a_skip_depends_only_on_the_skipped_entries() -> None:
    # A consumer with a large backlog.
    topic, subscription = await subscribed_topic(ledger_entries=7)
    topic.publish(100)
    consumer, _ = consume(subscription, SHARED, 100)
    await settle()
    dispatcher = dispatcher_of(subscription)
    for _ in range(3):
        subscription.skip(1)
    # Until its turn, the dispatcher keeps only the names of skipped entries.
    assert [len(list(one.positions)) for one in dispatcher._leaving] == [1, 1, 1]
    assert consumer.unacked == 100


async def test_many_long_skips_are_merged_into_a_single_pass_over_pending_messages(
    monkeypatch,
) -> None:
    monkeypatch.setattr(holding, "LEAVING_A_TURN", 3)
    topic, subscription = await subscribed_topic(ledger_entries=7)
    topic.publish(100)
    consumer, _ = consume(subscription, SHARED, 100)
    await settle()
    dispatcher = dispatcher_of(subscription)
    for _ in range(9):
        subscription.skip(10)
    assert len(dispatcher._leaving) == 1
    for _ in range(4):
        await settle()
    assert consumer.unacked == 10


@given(
    skips=st.lists(st.integers(1, 12), max_size=8),
    redelivered=st.sets(st.integers(0, 39)),
    most=st.sampled_from((3, LEAVING_A_TURN)),
)
async def test_exactly_the_skipped_messages_are_taken_from_their_consumers(
    skips: list[int], redelivered: set[int], most: int
) -> None:
    with patch.object(holding, "LEAVING_A_TURN", most):
        await skipped(skips, redelivered)


async def skipped(skips: list[int], redelivered: set[int]) -> None:
    topic, subscription = await subscribed_topic(ledger_entries=7)
    positions = topic.publish(40)
    first, _ = consume(subscription, SHARED, 15)
    second, _ = consume(subscription, SHARED, 15)
    await settle()
    subscription.redeliver(first, ids(*(positions[one] for one in redelivered)), None)
    for count in skips:
        subscription.skip(count)
    for _ in range(4):
        await settle()
    mark = subscription.cursor.mark_delete
    for consumer in (first, second):
        assert all(position > mark for position in consumer.pending)
        assert consumer.unacked == sum(one >> HASH_BITS for _, one in consumer.pending.items())
    assert dispatcher_of(subscription).unacked == first.unacked + second.unacked
    # The remaining messages are delivered once there are permits.
    first.subscription.flow(first, 100)
    for _ in range(4):
        await settle()
    held = {*first.pending, *second.pending}
    assert held == {position for position in positions if position > mark}


@pytest.mark.parametrize("kind", [SHARED, pb.CommandSubscribe.Exclusive])
async def test_a_lifted_dispatch_rate_no_longer_delays_messages(kind) -> None:
    # The next message may go in a quarter of an hour
    topic = await kept_topic(replace(DEFAULTS, subscription_dispatch_rate=Rate(1, -1, 1_000)))
    there = topic.subscriptions()
    subscription = there.create("s")
    topic.publish(5)
    _, cnx = consume(subscription, kind, 100)
    await settle()
    before = len(cnx.entries)
    topic.policies = DEFAULTS
    there.policies_changed()
    await settle()
    assert before < 5
    assert len(cnx.entries) == 5


async def test_skips_of_a_subscription_without_consumers_queue_no_work() -> None:
    topic = await kept_topic()
    subscription = topic.subscriptions().create("s", earliest=True)
    consumer, _ = consume(subscription, SHARED, 1)
    await settle()
    subscription.remove_consumer(consumer)
    topic.publish(10)
    for _ in range(5):
        subscription.skip(1)
    assert not subscription.dispatcher._leaving


async def test_all_chunks_of_a_message_go_to_one_consumer() -> None:
    topic, subscription = await subscribed_topic()
    _, first = consume(subscription, SHARED, 10)
    _, second = consume(subscription, SHARED, 10)
    await settle()
    for number in range(3):
        for uuid in ("a", "b"):
            topic.publish_chunk(uuid, number, 3)
            await dispatched(subscription)
    assert (first.entries, second.entries) == ([0, 2, 4], [1, 3, 5])


async def test_a_chunk_waits_for_the_consumer_of_the_first_chunk_other_messages_do_not() -> None:
    topic, subscription = await subscribed_topic()
    owner, first = consume(subscription, SHARED, 1)
    await settle()
    topic.publish_chunk("a", 0, 2)
    await dispatched(subscription)
    _, second = consume(subscription, SHARED, 10)
    topic.publish_chunk("a", 1, 2)
    topic.publish(2)
    await dispatched(subscription)
    assert (first.entries, second.entries) == ([0], [2, 3])
    subscription.flow(owner, 1)
    await settle()
    assert first.entries == [0, 1]


async def test_chunks_of_a_closed_consumer_go_to_another_consumer_together() -> None:
    topic, subscription = await subscribed_topic()
    owner, _ = consume(subscription, SHARED, 1)
    await settle()
    topic.publish_chunk("a", 0, 2)
    await dispatched(subscription)
    _, second = consume(subscription, SHARED, 10)
    topic.publish_chunk("a", 1, 2)
    await dispatched(subscription)
    subscription.remove_consumer(owner)
    await settle()
    assert sorted(second.entries) == [0, 1]


async def test_a_redelivery_unblocks_a_consumer_at_its_limit_of_unacknowledged_messages() -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, max_unacked_per_consumer=4))
    first, *_ = topic.publish(6)
    consumer, cnx = consume(subscription, SHARED, 100)
    await settle()
    assert (cnx.take_entries(), consumer.blocked) == ([0, 1, 2, 3], True)
    subscription.redeliver(consumer, ids(first), None)
    await settle()
    assert cnx.take_entries() == [0]


async def test_permits_granted_to_a_blocked_consumer_count_once_it_is_unblocked() -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, max_unacked_per_consumer=2))
    stored = topic.publish(2)
    consumer, _ = consume(subscription, SHARED, 2)
    await settle()
    subscription.flow(consumer, 10)
    assert consumer.permits == 0
    subscription.acknowledge(consumer, ids(*stored))
    assert consumer.permits == 10


async def test_a_non_durable_subscription_has_no_limit_of_unacknowledged_messages() -> None:
    topic = await kept_topic(replace(DEFAULTS, max_unacked_per_consumer=2))
    subscription = topic.subscriptions().create("s", durable=False)
    topic.publish(5)
    _, cnx = consume(subscription, SHARED, 10)
    await dispatched(subscription)
    assert len(cnx.entries) == 5


async def test_due_messages_are_delivered_with_the_next_permits_before_the_timer() -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, delayed_tick_ms=1_000))
    consumer, cnx = consume(subscription, SHARED, 1)
    await settle()
    topic.publish(deliver_at=topic.clock.wall_ms() + 1_500)
    await dispatched(subscription)
    assert cnx.entries == []
    topic.clock.advance(0.6)  # Within a tick of the delivery time.
    subscription.flow(consumer, 1)
    await settle()
    assert cnx.entries == [0]


async def test_the_mean_batch_gives_a_tenth_of_the_weight_to_each_later_delivery() -> None:
    topic, subscription = await subscribed_topic()
    consumer, _ = consume(subscription, SHARED, 100)
    await settle()
    for batch in (10, 0):
        topic.publish(batch=batch)
        await dispatched(subscription)
    assert consumer.mean_batch == pytest.approx(9.1)


async def test_a_redelivered_batch_counts_as_a_whole_in_the_messages_sent() -> None:
    topic, subscription = await subscribed_topic()
    consumer, _ = consume(subscription, SHARED, 100)
    (batch,) = topic.publish(batch=10)
    await dispatched(subscription)
    subscription.acknowledge(consumer, ids(batch, ack_set=[0b1111110000]))
    subscription.redeliver(consumer, ids(batch), None)
    await settle()
    assert (consumer.messages_out, consumer.messages_acked) == (20, 4)


async def test_a_chunk_without_its_first_chunk_stops_the_subscription_of_a_real_broker() -> None:
    topic = await kept_topic()
    subscription = topic.subscriptions(SubscriptionRules(waits_for_first_chunk=True)).create("s")
    _, cnx = consume(subscription, SHARED, 100)
    orphan = topic.publish_chunk("a", 1, 2)
    topic.publish()
    await dispatched(subscription)
    topic.publish()
    await dispatched(subscription)
    assert cnx.entries == [1]  # Read together with the chunk.
    subscription.skip_through(orphan)
    await settle()
    assert cnx.entries == [1, 2]


async def test_later_delayed_messages_keep_a_timer_after_an_early_delivery() -> None:
    topic, subscription = await subscribed_topic(replace(DEFAULTS, delayed_tick_ms=1_000))
    consumer, cnx = consume(subscription, SHARED, 1)
    await settle()
    for seconds in (3, 60):
        topic.publish(deliver_at=topic.clock.wall_ms() + 1_000 * seconds)
    await dispatched(subscription)
    topic.clock.advance(2.25)
    subscription.flow(consumer, 10)
    await settle()
    assert cnx.entries == [0]
    for _ in range(70):
        topic.clock.advance(1.0)
        await settle()
    assert cnx.entries == [0, 1]


async def test_a_chunk_of_a_closed_owner_waits_for_the_next_owner_without_stopping_others() -> None:
    topic, subscription = await subscribed_topic()
    first, _ = consume(subscription, SHARED, 1)
    await settle()
    for number in range(3):
        topic.publish_chunk("a", number, 3)
    await dispatched(subscription)
    other, cnx = consume(subscription, SHARED)
    owner, chunks = consume(subscription, SHARED, 2)
    await settle()
    subscription.remove_consumer(first)
    await settle()
    assert chunks.entries == [0, 1]
    subscription.flow(other, 10)
    topic.publish(2)
    await dispatched(subscription)
    assert cnx.entries == [3, 4]
    subscription.flow(owner, 1)
    await settle()
    assert chunks.entries == [0, 1, 2]


async def test_an_acknowledged_chunk_without_its_first_chunk_no_longer_stops_delivery() -> None:
    topic = await kept_topic()
    subscription = topic.subscriptions(SubscriptionRules(waits_for_first_chunk=True)).create("s")
    consumer, cnx = consume(subscription, SHARED, 100)
    orphan = topic.publish_chunk("a", 1, 2)
    await dispatched(subscription)
    topic.publish()
    await dispatched(subscription)
    assert cnx.entries == []
    subscription.acknowledge(consumer, ids(orphan))
    await settle()
    assert cnx.entries == [1]
