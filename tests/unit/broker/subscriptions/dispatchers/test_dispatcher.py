"""The common part of all dispatchers: a read that fails, or leaves something out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.managed_ledger import MessageStoreError
from broker.messages.position import EARLIEST
from broker.subscriptions.dispatchers.dispatcher import READ_AGAIN_SECONDS
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import consume, kept_topic

if TYPE_CHECKING:
    from broker.messages.entry import Entry
    from broker.messages.position import Position


@pytest.mark.parametrize("kind", [pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared])
async def test_what_cannot_be_read_holds_up_no_other_subscription_and_is_read_again(
    kind: pb.CommandSubscribe.SubType.ValueType, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
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
    # When
    there.entries_added()
    await settle()
    # Then
    assert (one.entries, other.entries) == ([], [0])
    topic.clock.advance(READ_AGAIN_SECONDS)
    await settle()
    assert one.entries == [0]


@pytest.mark.parametrize("kind", [pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared])
@pytest.mark.parametrize("left", [[1], []], ids=["some", "all"])
async def test_what_a_read_leaves_out_is_not_read_again_and_again(
    kind: pb.CommandSubscribe.SubType.ValueType, left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    topic = await kept_topic()
    there = topic.subscriptions()
    _, consumer = consume(there.create("a"), kind, 10)
    await settle()
    topic.publish()
    topic.publish()
    entries = topic.ledger.read(topic.ledger.following(EARLIEST), 10, 1_000)
    reads = []

    async def damaged(first: Position, max_entries: int, max_bytes: int) -> list[Entry]:
        reads.append(first.entry_id)
        return [entry for entry in entries if first.entry_id <= entry.entry_id in left]

    monkeypatch.setattr(topic.ledger, "read", lambda *_: None)
    monkeypatch.setattr(topic.ledger, "fetch", damaged)
    # When
    there.entries_added()
    await settle()
    # Then
    assert (consumer.entries, reads) == (left, [0])


@pytest.mark.parametrize("left", [[1], []], ids=["some", "all"])
async def test_what_is_left_out_of_what_was_given_back_is_not_read_again_and_again(
    left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    topic = await kept_topic()
    there = topic.subscriptions()
    subscription = there.create("a")
    (first, had) = consume(subscription, pb.CommandSubscribe.Shared, 10)
    topic.publish()
    topic.publish()
    there.entries_added()
    await settle()
    entries = topic.ledger.read(topic.ledger.following(EARLIEST), 10, 1_000)
    reads = []

    async def damaged(positions: list[Position]) -> list[Entry]:
        reads.append(len(positions))
        return [entry for entry in entries if entry.entry_id in left]

    monkeypatch.setattr(topic.ledger, "read_each", lambda _: None)
    monkeypatch.setattr(topic.ledger, "fetch_each", damaged)
    had.take_entries()
    # When
    subscription.dispatcher.redeliver(first, None)
    await settle()
    # Then
    assert (had.entries, reads) == (left, [2])
