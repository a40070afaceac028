"""The common part of all dispatchers: a read that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.managed_ledger import MessageStoreError
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
