"""The subscriptions of a topic: where a new one begins."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.position import EARLIEST, LATEST, Position, to_wire
from tests.support.messages.consumers import consume, kept_topic

FAR = Position(999_999_999, 0)
POSITIONS = pb.CommandSubscribe.Earliest, pb.CommandSubscribe.Latest


@pytest.mark.parametrize(
    ("start", "position", "backlog"),
    [
        (EARLIEST, pb.CommandSubscribe.Latest, 3),
        (LATEST, pb.CommandSubscribe.Latest, 0),
        (LATEST, pb.CommandSubscribe.Earliest, 3),
        (FAR, pb.CommandSubscribe.Latest, 0),
        (FAR, pb.CommandSubscribe.Earliest, 3),
        (None, pb.CommandSubscribe.Earliest, 3),
        (None, pb.CommandSubscribe.Latest, 0),
    ],
)
async def test_one_that_is_not_durable_begins_where_it_says_if_there_is_such_an_entry(
    start: Position | None, position: pb.CommandSubscribe.InitialPosition.ValueType, backlog: int
) -> None:
    # Given
    topic = await kept_topic()
    topic.publish(3)
    asked = pb.CommandSubscribe(subscription="s", durable=False, initialPosition=position)
    if start is not None:
        asked.start_message_id.ledgerId = to_wire(start.ledger_id)
        asked.start_message_id.entryId = to_wire(start.entry_id)
    # When
    subscription = await topic.subscriptions().open(asked)
    # Then
    assert subscription.cursor.backlog == backlog


@pytest.mark.parametrize("position", POSITIONS)
async def test_one_that_is_not_durable_may_begin_with_the_entry_that_is_stored_next(
    position: pb.CommandSubscribe.InitialPosition.ValueType,
) -> None:
    # Given
    topic = await kept_topic()
    last = topic.publish(3)[-1]
    asked = pb.CommandSubscribe(subscription="s", durable=False, initialPosition=position)
    asked.start_message_id.ledgerId = last.ledger_id
    # When: an entry that is there, and the one behind the last
    asked.start_message_id.entryId = last.entry_id
    from_last = await topic.subscriptions().open(asked)
    asked.start_message_id.entryId = last.entry_id + 1
    from_next = await topic.subscriptions().open(asked)
    # Then
    assert (from_last.cursor.backlog, from_next.cursor.backlog) == (1, 0)


async def test_one_that_is_there_is_moved_by_time_and_its_consumers_closed() -> None:
    # Given: messages of the first minute of 1970, and one that is due
    topic = await kept_topic()
    subscriptions = topic.subscriptions()
    subscription = subscriptions.create("s", earliest=True)
    topic.publish(3)
    consumer, cnx = consume(subscription, pb.CommandSubscribe.Shared)
    asked = pb.CommandSubscribe(subscription="s", start_message_rollback_duration_sec=60)
    # When
    again = await subscriptions.open(asked)
    # Then
    assert again is subscription
    assert (consumer in subscription.consumers, subscription.cursor.backlog) == (False, 0)
    assert [one.type for one in cnx.commands] == [pb.BaseCommand.CLOSE_CONSUMER]


async def test_one_that_waits_for_consumers_that_a_seek_closed_is_shown_to_nobody_else() -> None:
    # Given
    topic = await kept_topic()
    subscriptions = topic.subscriptions()
    asked = pb.CommandSubscribe(subscription="s", durable=False)
    subscription = await subscriptions.open(asked)
    consume(subscription, pb.CommandSubscribe.Shared)
    # When
    subscription.seek(EARLIEST)
    # Then
    assert subscriptions.get("s") is None
    assert await subscriptions.open(asked) is subscription
    assert subscriptions.get("s") is subscription
