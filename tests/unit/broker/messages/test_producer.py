"""Producers: numbers of the wire are Java longs."""

from types import SimpleNamespace

import proto.PulsarApi_pb2 as pb
from broker.messages.producer import Producer


def test_a_topic_epoch_of_all_bits_is_minus_one() -> None:
    request = pb.CommandProducer(topic="t", producer_id=1, request_id=1, topic_epoch=2**64 - 1)
    made = Producer(RecordingConnection(), request, "p")  # type: ignore[arg-type]
    made.opened(2**64)
    # An oversized name does not end producers either
    assert made.asked_epoch == -1


class RecordingConnection:
    publishes = SimpleNamespace(producer_opens=lambda: None)

    def send(self, command: pb.BaseCommand) -> None:
        assert command.producer_success.topic_epoch == 0
