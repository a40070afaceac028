"""CONSUMER_STATS: figures of a consumer, whatever it was sent."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_payload_command
from tests.fuzz.driving.broker_preludes import prelude
from tests.fuzz.driving.broker_world import BrokerWorld
from tests.support.peers.raw_peer import frame

Type = pb.BaseCommand
WITH_A_PRODUCER_AND_CONSUMERS = 2


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
def test_a_batch_that_says_it_has_less_than_no_messages_is_counted_as_javas_long(
    profile: str,
) -> None:
    # Given
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    metadata.num_messages_in_batch = -1
    send = pb.BaseCommand(type=Type.SEND, send=pb.CommandSend(producer_id=1, sequence_id=1))
    flow = pb.CommandFlow(consumer_id=1, messagePermits=3)
    asked = pb.CommandConsumerStats(request_id=9, consumer_id=1)
    world = BrokerWorld(floodgateProfile=profile)
    with world.loop.running():
        (peer,) = prelude(world, WITH_A_PRODUCER_AND_CONSUMERS)
        peer.say(frame(pb.BaseCommand(type=Type.FLOW, flow=flow)))
        peer.say(encode_payload_command(send, metadata.SerializeToString(), b"payload"))
        # When
        peer.say(frame(pb.BaseCommand(type=Type.CONSUMER_STATS, consumerStats=asked)))
    # Then
    found = [one for one in peer.answers() if one.type == Type.CONSUMER_STATS_RESPONSE]
    assert [one.consumerStatsResponse.unackedMessages for one in found] == [2**64 - 1]
