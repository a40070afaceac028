"""Numbers as protobuf writes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from proto.varint import varint


@given(st.integers(0, 2**64 - 1))
def test_a_number_is_written_as_protobuf_writes_it(number: int) -> None:
    # Given
    message = pb.MessageIdData(ledgerId=number, entryId=0)
    # When
    written = varint(number)
    # Then
    assert message.SerializePartialToString() == b"\x08" + written + b"\x10\x00"
