"""A topic's subscriptions: how clients join, and how subscriptions end."""

import asyncio
from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.commands.subscribing import options_of
from broker.messages.compaction.topic_compaction import SUBSCRIPTION
from broker.messages.deduplication import CURSOR
from broker.messages.position import EARLIEST, LATEST, Position, to_wire
from broker.messages.stores.managed_ledger import CursorState
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.subscriptions.subscriptions import (
    RETURN_SECONDS,
    SAVE_SECONDS,
    ClosedWithOthersError,
    Subscriptions,
)
from broker.policies.effective import DEFAULTS, Rate
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import settle, started
from tests.support.messages.consumers import KeptTopic, consume, ids, kept_topic
from tests.support.subscriptions.recording_client import RecordingClient
from tests.support.subscriptions.stored_topic import StoredTopic

Shared, Exclusive = pb.CommandSubscribe.Shared, pb.CommandSubscribe.Exclusive
HOST = "127.0.0.1"
FAR = Position(999_999_999, 0)
POSITIONS = pb.CommandSubscribe.Earliest, pb.CommandSubscribe.Latest


def asking(
    name: str = "s", kind: pb.CommandSubscribe.SubType.ValueType = Shared
) -> pb.CommandSubscribe:
    return pb.CommandSubscribe(
        topic="t", subscription=name, subType=kind, consumer_id=1, request_id=1, consumer_name="c"
    )


async def topic_with(**policies: object) -> StoredTopic:
    topic = await StoredTopic.loaded(MemoryMessageStore())
    topic.policies = replace(DEFAULTS, **policies)
    topic.subscriptions.policies_changed()
    return topic


async def test_a_consumer_above_the_subscribe_rate_is_refused_without_a_subscription() -> None:
    topic = await topic_with(subscribe_rate=Rate(2, period_seconds=1000))
    for _ in range(2):
        await topic.subscriptions.open(asking(), HOST)
    with pytest.raises(RequestError) as refused:
        await topic.subscriptions.open(asking("another"), HOST)
    assert refused.value.server_error == pb.NotAllowedError
    assert refused.value.message == "Subscribe limited by subscribe rate limit per consumer."
    assert "another" not in topic.subscriptions
    await topic.subscriptions.open(asking(), "10.0.0.1")


async def test_the_cursor_of_a_reader_is_found_again_after_a_seek() -> None:
    # A reader that has read two of three messages, and returns to the second.
    topic = await topic_with()
    positions = [topic.publish(payload) for payload in (b"0", b"1", b"2")]
    reading = asking("reader", Exclusive)
    reading.durable = False
    opened = await topic.subscriptions.open(reading, HOST)
    opened.add_consumer(RecordingClient(), options_of(reading))
    opened.seek(positions[1])
    # The subscription is gone until a client subscribes again.
    assert len(topic.subscriptions) == 0
    again = await topic.subscriptions.open(asking("reader"), HOST)
    assert again.cursor.first_left == positions[1]
    assert not again.durable


async def test_the_cursor_of_a_reader_that_does_not_return_is_forgotten() -> None:
    topic = await topic_with()
    first = topic.publish(b"0")
    reading = asking("reader", Exclusive)
    reading.durable = False
    opened = await topic.subscriptions.open(reading, HOST)
    opened.add_consumer(RecordingClient(), options_of(reading))
    opened.seek(first)
    topic.clock.advance(RETURN_SECONDS)
    again = await topic.subscriptions.open(asking("reader"), HOST)
    assert again.cursor.backlog == 0
    assert again.durable


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
async def test_a_non_durable_subscription_begins_at_an_existing_start_entry(
    start: Position | None, position: pb.CommandSubscribe.InitialPosition.ValueType, backlog: int
) -> None:
    topic = await kept_topic()
    topic.publish(3)
    asked = pb.CommandSubscribe(subscription="s", durable=False, initialPosition=position)
    if start is not None:
        asked.start_message_id.ledgerId = to_wire(start.ledger_id)
        asked.start_message_id.entryId = to_wire(start.entry_id)
    subscription = await topic.subscriptions().open(asked, HOST)
    assert subscription.cursor.backlog == backlog


@pytest.mark.parametrize("position", POSITIONS)
async def test_a_non_durable_subscription_may_begin_behind_the_last_entry(
    position: pb.CommandSubscribe.InitialPosition.ValueType,
) -> None:
    topic = await kept_topic()
    last = topic.publish(3)[-1]
    asked = pb.CommandSubscribe(subscription="s", durable=False, initialPosition=position)
    asked.start_message_id.ledgerId = last.ledger_id
    # An existing entry, and the position behind the last entry
    asked.start_message_id.entryId = last.entry_id
    from_last = await topic.subscriptions().open(asked, HOST)
    asked.start_message_id.entryId = last.entry_id + 1
    from_next = await topic.subscriptions().open(asked, HOST)
    assert (from_last.cursor.backlog, from_next.cursor.backlog) == (1, 0)


async def test_a_rollback_moves_an_existing_subscription_and_closes_its_consumers() -> None:
    # Messages of the first minute of 1970, and a due message
    topic = await kept_topic()
    subscriptions = topic.subscriptions()
    subscription = subscriptions.create("s", earliest=True)
    topic.publish(3)
    consumer, cnx = consume(subscription, pb.CommandSubscribe.Shared)
    asked = pb.CommandSubscribe(subscription="s", start_message_rollback_duration_sec=60)
    again = await subscriptions.open(asked, HOST)
    assert again is subscription
    assert (consumer in subscription.consumers, subscription.cursor.backlog) == (False, 0)
    assert [one.type for one in cnx.commands] == [pb.BaseCommand.CLOSE_CONSUMER]


async def test_a_subscription_deleted_during_a_time_search_is_recreated(monkeypatch) -> None:
    topic = await kept_topic()
    subscriptions = topic.subscriptions()
    topic.publish(3)
    before = subscriptions.create("s", earliest=True)
    published_at, may_go_on = topic.ledger.published_at, asyncio.Event()

    async def slow(time_ms: int) -> Position:
        await may_go_on.wait()
        return await published_at(time_ms)

    monkeypatch.setattr(topic.ledger, "published_at", slow)
    asked = pb.CommandSubscribe(
        subscription="s", durable=True, start_message_rollback_duration_sec=60
    )
    opening = await started(subscriptions.open(asked, HOST))
    subscriptions.delete("s")
    may_go_on.set()
    made = await opening
    assert made is subscriptions.get("s") is not before


async def test_only_the_last_subscription_to_leave_a_ledger_triggers_a_trim(monkeypatch) -> None:
    # Ten subscriptions at the start of the first of two ledgers
    topic = await kept_topic(ledger_entries=2)
    subscriptions = topic.subscriptions()
    made = [subscriptions.create(f"s{number}", earliest=True) for number in range(10)]
    topic.publish(4)
    looks = 0
    moved = subscriptions.moved

    def counted() -> None:
        nonlocal looks
        looks += 1
        moved()

    monkeypatch.setattr(subscriptions, "moved", counted)
    made[0].skip(1)
    before, ledgers = looks, len(topic.ledger.ledgers)
    for subscription in made[:-1]:
        subscription.skip(3)
    # All clients but one have left
    assert (looks, len(topic.ledger.ledgers)) == (before, ledgers)
    made[-1].skip(3)
    assert (looks, len(topic.ledger.ledgers)) == (before + 1, ledgers - 1)


async def test_in_profile_pulsar_a_non_durable_rollback_closes_every_consumer() -> None:
    topic = await kept_topic()
    subscriptions = topic.subscriptions(SubscriptionRules(closes_who_rolls_back=True))
    durable = subscriptions.create("durable", earliest=True)
    brief = subscriptions.create("s", earliest=True, durable=False)
    _, cnx = consume(brief, Shared)
    asked = pb.CommandSubscribe(
        subscription="s", durable=False, start_message_rollback_duration_sec=60
    )
    with pytest.raises(ClosedWithOthersError):
        await subscriptions.open(asked, HOST)
    assert [one.type for one in cnx.commands] == [pb.BaseCommand.CLOSE_CONSUMER]
    asked.subscription, asked.durable = "durable", True
    assert await subscriptions.open(asked, HOST) is durable


async def test_a_reserved_cursor_name_is_refused_as_a_subscription_name() -> None:
    topic = await topic_with()
    topic.ledger.save_cursor(CURSOR, CursorState(EARLIEST, properties={"p": "7"}))
    with pytest.raises(RequestError) as refused:
        topic.subscriptions.create(CURSOR)
    text = "Subscription with reserved subscription name attempted"
    assert (refused.value.server_error, refused.value.message) == (pb.ProducerBusy, text)
    assert topic.ledger.cursors[CURSOR].properties == {"p": "7"}


async def test_clearing_backlogs_includes_the_compaction_cursor_only_if_requested() -> None:
    topic = await topic_with()
    found = [topic.subscriptions.create(name) for name in ("s", SUBSCRIPTION)]
    topic.publish(b"m")
    topic.subscriptions.clear_backlogs(internal=False)
    assert [one.cursor.backlog for one in found] == [0, 1]
    topic.subscriptions.clear_backlogs(internal=True)
    assert [one.cursor.backlog for one in found] == [0, 0]


async def test_a_seek_does_not_move_the_compaction_cursor() -> None:
    topic = await topic_with()
    found = topic.subscriptions.create(SUBSCRIPTION)
    topic.publish(b"m")
    found.seek(LATEST)
    assert found.cursor.backlog == 1


async def changed_cursors(count: int) -> tuple[KeptTopic, Subscriptions]:
    """Return subscriptions with one acknowledged entry each, and no saved cursor."""
    topic = await kept_topic()
    there = topic.subscriptions()
    found = [there.create(f"s-{number}") for number in range(count)]
    (position,) = topic.publish()
    for subscription in found:
        consumer, _ = consume(subscription, Shared)
        subscription.acknowledge(consumer, ids(position))
    return topic, there


def saved(topic: KeptTopic) -> int:
    """Return the number of cursors saved in their current state."""
    last = topic.ledger.last_confirmed
    return sum(one.mark_delete == last for one in topic.ledger.cursors.values())


async def test_changed_cursors_are_saved_in_separate_steps() -> None:
    topic, _ = await changed_cursors(3)
    topic.clock.advance(SAVE_SECONDS)
    assert saved(topic) == 1
    await settle()
    assert saved(topic) == 3


@pytest.mark.parametrize("how", ["closed", "deleted"])
async def test_a_subscription_ended_while_cursors_are_saved_is_not_saved(how: str) -> None:
    topic, there = await changed_cursors(3)
    topic.clock.advance(SAVE_SECONDS)
    if how == "closed":
        there.close()
    else:
        there.delete("s-1")
    await settle()
    assert saved(topic) == (1 if how == "closed" else 2)
    assert ("s-1" in topic.ledger.cursors) == (how == "closed")
