"""The broker is told and asked what a consumer wants."""

from __future__ import annotations

import proto.PulsarApi_pb2 as pb
from client.messages.enums import ConsumerType
from tests.support.peers.model_broker import ModelBroker
from tests.support.peers.model_consumers import kinds, opened

Type = pb.BaseCommand
REDELIVER = Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
SHARED = ConsumerType.Shared


async def test_broker_stats_are_as_old_as_the_options_allow() -> None:
    # Given
    broker = ModelBroker()
    consumer = await opened(broker, broker_consumer_stats_cache_time_ms=1_000)
    # When
    for _ in range(2):
        (stats,) = (await consumer.get_broker_consumer_stats()).values()
    broker.clock.advance(1)
    await consumer.get_broker_consumer_stats()
    # Then
    assert stats.unacked_messages == 3
    assert kinds(broker).count(Type.CONSUMER_STATS) == 2
