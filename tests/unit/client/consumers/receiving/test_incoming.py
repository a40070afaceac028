"""What comes is counted, read, skipped and asked for."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from client.messages.enums import ConsumerType
from tests.support.peers.model_broker import ModelBroker
from tests.support.peers.model_consumers import numbers, opened

Type = pb.BaseCommand
REDELIVER = Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
SHARED = ConsumerType.Shared


async def test_a_broken_entry_is_acknowledged_with_the_reason_and_its_permit_comes_free() -> None:
    # Given
    broker = ModelBroker()
    broker.publish()
    broker.entries[0].tail = broker.entries[0].tail[:-1] + b"?"
    broker.publish()
    # When
    consumer = await opened(broker)
    # Then
    assert await numbers(consumer, 1) == [b"1"]
    assert broker.acks[0].validation_error == pb.CommandAck.ChecksumMismatch
    assert broker.left == [1]
    assert consumer.statistics().topics[0].broken_entries == 1


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, SHARED])
async def test_more_is_pending_as_the_broker_says(kind: ConsumerType) -> None:
    # Given
    broker = ModelBroker(delivers=False)
    consumer = await opened(broker, consumer_type=kind)
    (topic,) = consumer._topics.topics.values()
    # When
    before = await topic.incoming.more_is_pending()
    broker.publish()
    broker.permits = 0
    # Then
    assert (before, await topic.incoming.more_is_pending()) == (False, True)
