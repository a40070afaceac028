"""The common part of all dispatchers: failed reads, and dispatch."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.entry import Entry
from broker.messages.errors import MessageStoreError
from broker.messages.position import Position
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.subscriptions.dispatchers.dispatcher import READ_AGAIN_SECONDS
from broker.messages.subscriptions.subscription import Subscription
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import consume, kept_topic

KINDS = (
    pb.CommandSubscribe.Exclusive,
    pb.CommandSubscribe.Failover,
    pb.CommandSubscribe.Shared,
    pb.CommandSubscribe.Key_Shared,
)


def fails(subscription: Subscription, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every delivery of a subscription fail with an unexpected error."""

    def fail(*_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(subscription.dispatcher, "_send", fail)


@pytest.mark.parametrize("kind", [pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared])
async def test_a_failed_read_does_not_delay_other_subscriptions_and_is_retried(
    kind: pb.CommandSubscribe.SubType.ValueType, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await kept_topic()
    there = topic.subscriptions()
    (_, one), (_, other) = (consume(there.create(name), kind, 10) for name in ("a", "b"))
    await settle()
    read = topic.ledger.read

    async def fails(first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        raise MessageStoreError("the disk is gone")

    def is_not_here_once(first: Position, max_entries: int, max_bytes: int) -> None:
        monkeypatch.setattr(topic.ledger, "read", read)

    monkeypatch.setattr(topic.ledger, "read", is_not_here_once)
    monkeypatch.setattr(topic.ledger, "fetch", fails)
    topic.publish()
    there.entries_added()
    await settle()
    assert (one.entries, other.entries) == ([], [0])
    topic.clock.advance(READ_AGAIN_SECONDS)
    await settle()
    assert one.entries == [0]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_failed_dispatch_affects_no_other_subscription_and_starts_anew(
    kind: pb.CommandSubscribe.SubType.ValueType,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = await kept_topic()
    turns = topic.turns
    there = topic.subscriptions(SubscriptionRules(failover_delay_seconds=0))
    broken, good = there.create("broken"), there.create("good")
    (_, one), (_, other) = consume(broken, kind, 10), consume(good, kind, 10)
    topic.clock.advance(0)
    await settle()
    fails(broken, monkeypatch)
    topic.publish(2)
    there.entries_added()
    ran: list[int] = []
    turns.later(lambda: ran.append(1))
    await settle()
    assert (one.entries, other.entries, ran) == ([], [0, 1], [1])
    assert "messages of broken of" in caplog.text
    broken.dispatcher.wake()  # type: ignore[union-attr]
    await settle()
    topic.clock.advance(READ_AGAIN_SECONDS)
    assert any(command.HasField("close_consumer") for command in one.commands)
    assert not broken.consumers
    monkeypatch.undo()
    _, again = consume(broken, kind, 10)
    topic.clock.advance(0)
    await settle()
    assert again.entries == [0, 1]


async def test_a_consumer_added_after_a_failed_dispatch_is_not_closed_by_its_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = await kept_topic()
    broken = topic.subscriptions().create("s")
    consumer, _ = consume(broken, pb.CommandSubscribe.Shared, 10)
    fails(broken, monkeypatch)
    topic.publish()
    broken.entries_added()
    await settle()
    broken.remove_consumer(consumer)
    monkeypatch.undo()
    _, next_one = consume(broken, pb.CommandSubscribe.Shared, 10)
    topic.clock.advance(READ_AGAIN_SECONDS)
    await settle()
    assert next_one.entries == [0]
    assert len(broken.consumers) == 1
