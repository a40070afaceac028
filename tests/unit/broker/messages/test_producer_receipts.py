"""Hand-written receipts equal those of Google's encoder."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.position import to_wire
from broker.messages.producer import (
    producer_prefix,
    receipt_frame,
    send_error,
)
from proto.frames import encode_command
from proto.parsing.varint import encode_varint

LARGEST = 2**64 - 1


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, 2**32, LARGEST])
def test_a_varint_equals_the_protobuf_encoding(number: int) -> None:
    encoded = pb.CommandCloseProducer(producer_id=number, request_id=0).SerializeToString()
    assert b"\x08" + encode_varint(number) + b"\x10\x00" == encoded


@pytest.mark.parametrize("highest", [0, 7, 2**63 - 1, -1])
@pytest.mark.parametrize(("ledger_id", "entry_id"), [(0, 0), (3, 300), (2**62, 2**40), (-1, -1)])
def test_a_receipt_frame_equals_the_encoded_command(
    ledger_id: int, entry_id: int, highest: int
) -> None:
    receipt = pb.CommandSendReceipt(
        producer_id=300,
        sequence_id=LARGEST,
        message_id=pb.MessageIdData(ledgerId=to_wire(ledger_id), entryId=to_wire(entry_id)),
        highest_sequence_id=to_wire(highest),
    )
    command = pb.BaseCommand(type=pb.BaseCommand.SEND_RECEIPT, send_receipt=receipt)
    frame = receipt_frame(producer_prefix(300), LARGEST, ledger_id, entry_id, highest)
    assert frame == encode_command(command)


def test_a_send_error_names_its_producer_and_sequence_id() -> None:
    error = send_error(1, 2, pb.ChecksumError, "no").send_error
    assert (error.producer_id, error.sequence_id, error.message) == (1, 2, "no")
