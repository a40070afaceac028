"""Hand-made receipts equal Google's encoder's, for all values."""

from hypothesis import given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from broker.messages.position import to_wire
from broker.messages.producer import producer_prefix, receipt_frame
from proto.frames import encode_command

UNSIGNED = st.integers(0, 2**64 - 1)
PLACES = st.integers(-1, 2**63 - 1)


@given(UNSIGNED, UNSIGNED, PLACES, PLACES, PLACES)
def test_a_receipt_frame_equals_the_encoded_command(
    producer_id: int, sequence_id: int, ledger_id: int, entry_id: int, highest: int
) -> None:
    receipt = pb.CommandSendReceipt(
        producer_id=producer_id,
        sequence_id=sequence_id,
        message_id=pb.MessageIdData(ledgerId=to_wire(ledger_id), entryId=to_wire(entry_id)),
        highest_sequence_id=to_wire(highest),
    )
    command = pb.BaseCommand(type=pb.BaseCommand.SEND_RECEIPT, send_receipt=receipt)
    frame = receipt_frame(producer_prefix(producer_id), sequence_id, ledger_id, entry_id, highest)
    assert frame == encode_command(command)
