"""A line for any frame: garbage must not cost a client its connection."""

from hypothesis import given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from proto.command_log import MAX_LINE_CHARACTERS, described
from proto.frames import encode_command
from tests.properties.proto.test_frames_properties import listing_answer
from tests.support.examples import many

MANY = settings(max_examples=many(300), deadline=None)
COMMANDS = [
    encode_command(listing_answer(1, 3)),
    encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing())),
    encode_command(
        pb.BaseCommand(
            type=pb.BaseCommand.SUBSCRIBE,
            subscribe=pb.CommandSubscribe(
                topic="t", subscription="s", subType=pb.CommandSubscribe.Shared, consumer_id=1,
                request_id=1, metadata=[pb.KeyValue(key="k", value="v")],
                schema=pb.Schema(name="n", schema_data=b"d", type=pb.Schema.Json),
            ),
        )
    ),
]  # fmt: skip


def check(total_size: int, body: bytes) -> None:
    line = described(total_size, body)
    assert len(line) <= MAX_LINE_CHARACTERS + len("...")
    assert line.isprintable()


@MANY
@given(st.integers(0, 2**32 - 1), st.binary(max_size=100))
def test_any_bytes_are_described_in_a_printable_line(total_size: int, body: bytes) -> None:
    check(total_size, body)


@MANY
@given(st.sampled_from(COMMANDS), st.data())
def test_a_damaged_command_is_described_in_a_printable_line(
    frame: bytes, data: st.DataObject
) -> None:
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(4, len(frame) - 1))] = data.draw(st.integers(0, 255))
    check(len(frame) - 4, bytes(changed[4 : data.draw(st.integers(4, len(frame)))]))
