"""Bounded work per turn of a dispatcher, whatever the backlog."""

from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.position import Position
from broker.messages.subscriptions.batch_acks import MOST_MESSAGES
from broker.messages.subscriptions.consumer import Consumer
from broker.messages.subscriptions.context import Waits
from broker.messages.subscriptions.dispatchers.dispatcher import ENTRIES_A_TURN, READ_ENTRIES
from broker.messages.subscriptions.dispatchers.holding import LEAVING_A_TURN
from broker.messages.subscriptions.dispatchers.key_shared import KeySharedDispatcher
from broker.messages.subscriptions.dispatchers.shared import SharedDispatcher
from broker.messages.subscriptions.subscription import Subscription
from broker.policies.effective import DEFAULTS
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import KeptTopic, consume, ids, kept_topic

EXCLUSIVE, SHARED = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared
KEY_SHARED = pb.CommandSubscribe.Key_Shared
SubType = pb.CommandSubscribe.SubType
MANY = 3_000
A_RUN = ENTRIES_A_TURN + READ_ENTRIES
LARGEST_ACK_SET = [-2] + [-1] * (MOST_MESSAGES // 64)


async def of_many(ledger_entries: int = MANY) -> tuple[KeptTopic, Subscription]:
    topic = await kept_topic(ledger_entries=ledger_entries)
    return topic, topic.subscriptions().create("s")


def dispatcher_of(subscription: Subscription) -> SharedDispatcher:
    assert isinstance(subscription.dispatcher, SharedDispatcher)
    return subscription.dispatcher


async def have(consumer: Consumer, messages: int) -> None:
    """Return when a consumer was sent ``messages`` messages."""
    while consumer.messages_out < messages:
        await settle()


async def test_a_run_reads_a_bounded_number_of_delayed_messages_and_later_turns_the_rest() -> None:
    topic, subscription = await of_many()
    later = topic.clock.wall_ms() + 60_000
    for number in range(MANY):  # The last is due first: no fixed delay.
        topic.publish(deliver_at=later + 2_000 * (MANY - number))
    consumer, _ = consume(subscription, SHARED)
    dispatcher = dispatcher_of(subscription)
    consumer.flowed(MANY)
    dispatcher.run()
    assert 0 < len(dispatcher.delayed) <= A_RUN
    while len(dispatcher.delayed) < MANY:
        await settle()


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, KEY_SHARED])
async def test_acknowledged_entries_behind_a_hole_are_skipped_without_being_read(
    kind: SubType.ValueType, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, subscription = await of_many(ledger_entries=1_000)
    positions = topic.publish(MANY)
    consumer, cnx = consume(subscription, kind)
    subscription.acknowledge(consumer, ids(*positions[1:-1]))
    reads = []
    read = topic.ledger.read

    def counted(first: Position, entries: int, size: int) -> list[object]:
        found = read(first, entries, size)
        reads.append(len(found))
        return found  # type: ignore[return-value]

    monkeypatch.setattr(topic.ledger, "read", counted)
    subscription.flow(consumer, 2 * READ_ENTRIES)
    await settle()
    # In each ledger the first hundred entries, or an incomplete hundred
    assert cnx.entries == [0, 999]
    assert sum(reads) <= 4 * READ_ENTRIES


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
async def test_a_run_drops_a_bounded_number_of_acknowledged_waiting_messages(kind) -> None:
    # All was released, then acknowledged
    topic, subscription = await of_many()
    positions = topic.publish(MANY)
    consumer, cnx = consume(subscription, kind, MANY)
    dispatcher = dispatcher_of(subscription)
    await have(consumer, MANY)
    subscription.redeliver(consumer, [], None)
    while consumer.pending:
        await settle()
    subscription.acknowledge(consumer, ids(*positions[1:-1]))
    cnx.take_entries()
    consumer.flowed(MANY)
    dispatcher.run()
    assert MANY - A_RUN <= len(dispatcher.replay) < MANY
    await have(consumer, MANY + 2)
    assert cnx.take_entries() == [0, MANY - 1]


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
async def test_a_skip_of_many_waiting_messages_is_processed_in_bounded_runs(kind) -> None:
    # Half of the messages were released, a consumer holds the other half
    topic, subscription = await of_many()
    positions = topic.publish(MANY, key="k")
    consumer, cnx = consume(subscription, kind, MANY)
    dispatcher = dispatcher_of(subscription)
    await have(consumer, MANY)
    subscription.redeliver(consumer, ids(*positions[::2]), None)
    while dispatcher._leaving:
        await settle()
    cnx.take_entries()
    subscription.skip(MANY - 2)
    dispatcher.run()
    # Half of the skipped messages remain to leave
    assert MANY // 2 - LEAVING_A_TURN <= len(consumer.pending) <= MANY // 2
    while dispatcher._leaving:
        await settle()
    assert [*consumer.pending] == [positions[-1]]
    subscription.flow(consumer, 5)
    await settle()
    assert (cnx.take_entries(), consumer.unacked) == ([MANY - 2], 2)


async def test_pending_messages_of_the_last_closed_consumer_are_freed_in_steps() -> None:
    topic, subscription = await of_many()
    topic.publish(MANY)
    consumer, _ = consume(subscription, SHARED, MANY)
    await have(consumer, MANY)
    dispatcher = dispatcher_of(subscription)
    maps = (consumer.pending, dispatcher._holders)
    subscription.remove_consumer(consumer)
    # The next delivery restarts immediately, without looking at earlier messages
    assert all(0 < len(one) < MANY for one in maps)
    assert (len(consumer.pending), len(dispatcher._holders)) == (0, 0)
    await settle()
    assert [len(one) for one in maps] == [0, 0]


async def test_a_consumer_without_permits_is_checked_a_fixed_number_of_times_per_read(
    monkeypatch,
) -> None:
    # Of many consumers only one has permits, 20 at a time
    topic, subscription = await of_many()
    topic.publish(READ_ENTRIES)
    members = [consume(subscription, SHARED)[0] for _ in range(50)]
    members[-1].flowed(READ_ENTRIES)
    asked: list[Consumer] = []
    takes = Consumer.waits.fget
    assert takes is not None

    def counted(consumer: Consumer) -> Waits | None:
        asked.append(consumer)
        return takes(consumer)

    dispatcher = dispatcher_of(subscription)
    monkeypatch.setattr(Consumer, "waits", property(counted))
    dispatcher.run()
    # Two checks for permits, then the choice of the next consumer
    assert members[-1].messages_out == READ_ENTRIES
    assert asked.count(members[0]) == 3


async def test_a_run_is_bounded_by_the_number_of_consumers() -> None:
    topic, subscription = await of_many(ledger_entries=1)
    topic.publish(10)
    for _ in range(20 * ENTRIES_A_TURN):
        consumer, _ = consume(subscription, SHARED, cnx=None)
    consumer.flowed(10)
    dispatcher_of(subscription).run()
    # A read of one entry, as each ledger has one entry; the next turn continues
    assert consumer.messages_out == 1
    await have(consumer, 10)


async def test_a_run_is_bounded_by_the_length_of_ack_sets() -> None:
    topic, subscription = await of_many()
    topic.policies = replace(DEFAULTS, max_unacked_per_consumer=0, max_unacked_per_subscription=0)
    positions = topic.publish(2 * READ_ENTRIES, batch=MOST_MESSAGES)
    consumer, _ = consume(subscription, SHARED)
    subscription.acknowledge(consumer, ids(*positions, ack_set=LARGEST_ACK_SET))
    consumer.flowed(2 * READ_ENTRIES * MOST_MESSAGES)
    dispatcher_of(subscription).run()
    # Entries of one read are dispatched together
    assert consumer.messages_out == READ_ENTRIES * MOST_MESSAGES
    await settle()
    assert consumer.messages_out == 2 * READ_ENTRIES * MOST_MESSAGES


async def test_no_message_is_redelivered_before_the_whole_command_is_processed() -> None:
    topic, subscription = await of_many()
    positions = topic.publish(4)
    consumer, cnx = consume(subscription, SHARED, 10)
    await settle()
    cnx.take_entries()
    subscription.redeliver(consumer, ids(positions[2]), None, more=True)
    await settle()
    before = cnx.take_entries()
    subscription.redeliver(consumer, ids(positions[0]), None)
    await settle()
    # Together, in the order of storage
    assert (before, cnx.take_entries()) == ([], [0, 2])


async def test_a_consumer_closed_within_its_command_does_not_delay_other_consumers() -> None:
    topic, subscription = await of_many()
    positions = topic.publish(4)
    leaver, _ = consume(subscription, SHARED, 10)
    _, other = consume(subscription, SHARED)
    await settle()
    subscription.redeliver(leaver, ids(positions[2]), None, more=True)
    subscription.remove_consumer(leaver)
    subscription.redeliver(leaver, ids(positions[0]), None, more=True)
    subscription.flow(other.consumers[1], 10)
    await settle()
    assert other.entries == [0, 1, 2, 3]


async def test_hashes_of_a_closed_consumer_drain_until_all_its_messages_are_released() -> None:
    # The consumer has two messages, and a third message of their key is waiting
    topic, subscription = await of_many()
    topic.publish(LEAVING_A_TURN + 1, key="k")
    leaver, _ = consume(subscription, KEY_SHARED, LEAVING_A_TURN + 1, name="a")
    await have(leaver, LEAVING_A_TURN + 1)
    _, other = consume(subscription, KEY_SHARED, MANY, name="b")
    dispatcher = dispatcher_of(subscription)
    assert isinstance(dispatcher, KeySharedDispatcher)
    subscription.remove_consumer(leaver)
    dispatcher.run()
    assert (len(leaver.pending), other.entries) == (1, [])
    while dispatcher._leaving:
        await settle()
    await settle()
    assert other.entries == list(range(LEAVING_A_TURN + 1))
    assert not dispatcher.draining._hashes.get(leaver)
    assert list(dispatcher._members.values()) == list(dispatcher.consumers)


@pytest.mark.parametrize("messages", [-1, 0, 3])
async def test_a_batch_with_any_announced_message_count_can_be_redelivered(messages: int) -> None:
    topic, subscription = await of_many()
    topic.publish(batch=messages)
    consumer, cnx = consume(subscription, SHARED, 10)
    await settle()
    subscription.redeliver(consumer, [], None)
    await settle()
    assert (cnx.entries, len(consumer.pending)) == ([0, 0], 1)
