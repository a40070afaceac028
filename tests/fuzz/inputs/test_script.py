from hypothesis import given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from proto.frames import FrameDecoder, split_body, verify_checksum
from tests.fuzz.inputs.script import (
    COMMAND,
    MESSAGE,
    WRONG,
    ScriptMutator,
    Step,
    message,
    read,
    wire_bytes,
    written,
)

MOST_BYTES = 300
KINDS = tuple(pb.BaseCommand.Type.values())


@given(st.binary(max_size=400), st.integers(0, 2**32))
def test_a_changed_script_is_read_as_it_was_written(data: bytes, seed: int) -> None:
    changed = ScriptMutator(KINDS, has_broker=True).mutated(
        data, MOST_BYTES, seed, lambda some, most: some[:most]
    )
    assert len(changed) <= MOST_BYTES
    whole = written(*read(changed))  # The last step may have been cut off.
    assert written(*read(whole)) == whole


@given(st.randoms(use_true_random=False), st.booleans())
def test_a_message_is_a_frame_whose_checksum_is_right_unless_it_is_to_be_wrong(
    random: object, wrong: bool
) -> None:
    decoder = FrameDecoder()
    decoder.feed(wire_bytes(Step(MESSAGE, WRONG if wrong else 0, message(random))))
    frame = decoder.next_frame()
    assert verify_checksum(split_body(frame.body(), frame.total_size)[1]) is not wrong


def test_a_command_is_framed() -> None:
    ping = pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing())
    decoder = FrameDecoder()
    decoder.feed(wire_bytes(Step(COMMAND, 0, ping.SerializeToString())))
    assert decoder.next_frame().command() == ping
