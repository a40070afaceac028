"""Hand-made MESSAGE commands equal protobuf's."""

from hypothesis import given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from broker.messages.subscriptions.message_frames import MessageFrames
from proto.frames import split_body

ids = st.integers(0, 2**63 - 1)


@given(
    consumer_id=st.integers(0, 2**64 - 1),
    partition=st.integers(-1, 1000),
    entries=st.lists(st.tuples(ids, ids), min_size=1, max_size=4),
    redelivery_count=st.integers(0, 2**32 - 1),
    ack_set=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
    epoch=st.integers(-1, 2**63 - 1),
)
def test_a_message_header_equals_the_protobuf_encoding(
    consumer_id: int,
    partition: int,
    entries: list[tuple[int, int]],
    redelivery_count: int,
    ack_set: list[int],
    epoch: int,
) -> None:
    frames = MessageFrames(consumer_id, partition)
    for ledger_id, entry_id in entries:
        message = pb.CommandMessage(
            consumer_id=consumer_id,
            message_id=pb.MessageIdData(ledgerId=ledger_id, entryId=entry_id, partition=partition),
            ack_set=ack_set,
        )
        if redelivery_count:
            message.redelivery_count = redelivery_count
        if epoch >= 0:
            message.consumer_epoch = epoch
        header = frames.header(ledger_id, entry_id, 7, redelivery_count, ack_set, epoch)
        total_size = int.from_bytes(header[:4], "big")
        command, _ = split_body(header[4:], total_size)
        expected = pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=message)
        assert command == expected.SerializeToString()
        assert total_size == len(header) - 4 + 7
