import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.position import signed
from proto.frames import encode_payload_command
from tests.fuzz.driving.broker_preludes import prelude
from tests.fuzz.driving.broker_world import BrokerWorld
from tests.support.peers.frames import frame

Type = pb.BaseCommand
WITH_A_PRODUCER_AND_CONSUMERS = 2


@pytest.mark.parametrize(
    ("profile", "messages", "unacked", "permits"),
    [
        ("pulsar", 0, 1, 2),
        ("pulsar", -1, 1, 2),
        ("pulsar", -2_000_000_000, 1, 2),
        # As recorded; a client that sends as many permits returns to the former number.
        ("pulsar", 2_000_000_000, 2_000_000_000, -1_999_999_997),
        ("floodgate", -2_000_000_000, 0, 3),
        ("floodgate", 2_000_000_000, 0, 3),
    ],
)
def test_a_batch_of_any_claimed_size_adds_no_permits_to_its_consumer(
    profile, messages, unacked, permits
) -> None:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    metadata.num_messages_in_batch = messages
    send = pb.BaseCommand(type=Type.SEND, send=pb.CommandSend(producer_id=1, sequence_id=1))
    flow = pb.CommandFlow(consumer_id=1, messagePermits=3)
    asked = pb.CommandConsumerStats(request_id=9, consumer_id=1)
    last = pb.CommandGetLastMessageId(request_id=10, consumer_id=1)
    world = BrokerWorld(floodgateProfile=profile)
    with world.loop.running():
        (peer,) = prelude(world, WITH_A_PRODUCER_AND_CONSUMERS)
        peer.say(frame(pb.BaseCommand(type=Type.FLOW, flow=flow)))
        peer.say(encode_payload_command(send, metadata.SerializeToString(), b"payload"))
        peer.say(frame(pb.BaseCommand(type=Type.CONSUMER_STATS, consumerStats=asked)))
        peer.say(frame(pb.BaseCommand(type=Type.GET_LAST_MESSAGE_ID, getLastMessageId=last)))
    answers = {one.type: one for one in peer.answers()}
    found = answers[Type.CONSUMER_STATS_RESPONSE].consumerStatsResponse
    assert (found.unackedMessages, signed(found.availablePermits)) == (unacked, permits)
    assert Type.GET_LAST_MESSAGE_ID_RESPONSE in answers
    assert (Type.SEND_ERROR in answers) is (profile == "floodgate")
