"""Bytes in, frames out, for any bytes in any chunks."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.frames import FrameDecoder, encode_command, encode_payload_command
from proto.parsing.varint import decode_varint, encode_varint
from tests.support.examples import many

MANY = settings(max_examples=many(100), deadline=None)
MAX_MESSAGE_BYTES = 20_000
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
REQUEST_IDS = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1))
CUTS = st.lists(st.integers(1, 400), min_size=1, max_size=50)


def listing_request(request_id: int, namespace: str) -> pb.BaseCommand:
    request = pb.CommandGetTopicsOfNamespace(request_id=request_id, namespace=namespace)
    return pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=request)


def listing_answer(request_id: int, names: int) -> pb.BaseCommand:
    response = pb.CommandGetTopicsOfNamespaceResponse(
        request_id=request_id, topics=[f"persistent://t/ns/{number}" for number in range(names)]
    )
    return pb.BaseCommand(
        type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, getTopicsOfNamespaceResponse=response
    )


PING = pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing())
COMMANDS = st.one_of(
    st.just(PING),
    st.builds(listing_request, REQUEST_IDS, TEXT),
    st.builds(listing_answer, REQUEST_IDS, st.integers(0, 200)),
)


def in_chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut data into chunks of the given sizes, again and again."""
    chunks: list[bytes] = []
    start = 0
    while start < len(data):
        size = cuts[len(chunks) % len(cuts)]
        chunks.append(data[start : start + size])
        start += size
    return chunks


def decoded(decoder: FrameDecoder, chunks: list[bytes]) -> list[pb.BaseCommand]:
    """Feed chunks and return every complete frame."""
    commands = []
    for chunk in chunks:
        decoder.feed(chunk)
        while (frame := decoder.next_frame()) is not None:
            commands.append(frame.command())
    return commands


@MANY
@given(st.lists(COMMANDS, max_size=8), CUTS, st.booleans())
def test_encoded_commands_are_decoded_from_chunks_of_any_size(commands, cuts, announced) -> None:
    stream = b"".join(map(encode_command, commands))
    keep: Callable[[int, bytes], bool] | None = (lambda *_: True) if announced else None
    decoder = FrameDecoder(MAX_MESSAGE_BYTES, keep)
    received = decoded(decoder, in_chunks(stream, cuts))
    assert received == commands
    assert decoder.buffered_bytes == 0


@MANY
@given(st.lists(COMMANDS, max_size=8), CUTS)
def test_drained_frames_leave_other_frames_intact(commands, cuts) -> None:
    sizes: list[int] = []
    heads: list[bytes] = []

    def drain(total_size: int, head: bytes) -> bool:
        sizes.append(total_size)
        heads.append(head)
        return False

    frames = [encode_command(command) for command in commands]
    decoder = FrameDecoder(MAX_MESSAGE_BYTES, drain)
    received = decoded(decoder, in_chunks(b"".join(frames), cuts))
    large = [frame for frame in frames if len(frame) - 4 >= 1_024]
    assert sizes == [len(frame) - 4 for frame in large]
    assert heads == [frame[4:52] for frame in large]
    assert list(map(encode_command, received)) == [frame for frame in frames if frame not in large]


@MANY
@given(st.lists(COMMANDS, min_size=1, max_size=8), CUTS, st.integers(0, 8))
def test_bytes_not_taken_as_frames_are_the_residue(commands, cuts, taken) -> None:
    frames = [encode_command(command) for command in commands]
    decoder = FrameDecoder(MAX_MESSAGE_BYTES)
    for chunk in in_chunks(b"".join(frames), cuts):
        decoder.feed(chunk)
    for _ in frames[:taken]:
        assert decoder.next_frame() is not None
    assert decoder.take_residue() == b"".join(frames[taken:])
    assert decoder.buffered_bytes == 0


@MANY
@given(st.binary(max_size=300), CUTS)
def test_random_bytes_raise_no_error_but_a_protocol_error(data: bytes, cuts: list[int]) -> None:
    decoder = FrameDecoder(MAX_MESSAGE_BYTES, lambda *_: True)
    try:
        decoded(decoder, in_chunks(data, cuts))
    except RemoteProtocolError:
        return
    assert decoder.buffered_bytes <= len(data)


@MANY
@given(st.binary(max_size=200), st.integers(0, 250), CUTS)
def test_random_commands_in_valid_frames_end_in_a_protocol_error_or_a_command(
    body: bytes, command_size: int, cuts: list[int]
) -> None:
    frame = struct.pack(">II", len(body) + 4, command_size) + body
    try:
        (command,) = decoded(FrameDecoder(MAX_MESSAGE_BYTES), in_chunks(frame, cuts))
    except RemoteProtocolError:
        return
    assert command.IsInitialized()


@MANY
@given(st.binary(max_size=40))
def test_small_frames_of_random_bytes_end_in_a_protocol_error_or_a_command(body: bytes) -> None:
    frame = struct.pack(">I", len(body)) + body
    try:
        (command,) = decoded(FrameDecoder(MAX_MESSAGE_BYTES), [frame])
    except RemoteProtocolError:
        return
    assert command.IsInitialized()


@MANY
@given(COMMANDS, st.integers(0, 60), st.integers(1, 255))
def test_a_flipped_byte_ends_in_a_protocol_error_or_a_command(command, position, flip) -> None:
    stream = bytearray(encode_command(command))
    stream[position % len(stream)] ^= flip
    try:
        received = decoded(FrameDecoder(MAX_MESSAGE_BYTES), [bytes(stream)])
    except RemoteProtocolError:
        return
    # All content is readable
    assert all(isinstance(str(one), str) and one.IsInitialized() for one in received)


@MANY
@given(TEXT, st.binary(max_size=100), st.binary(max_size=100))
def test_a_payload_is_decoded_behind_its_command(
    text: str, metadata: bytes, payload: bytes
) -> None:
    command = listing_request(1, text)
    decoder = FrameDecoder()
    decoder.feed(encode_payload_command(command, metadata, payload))
    frame = decoder.next_frame()
    assert frame is not None
    assert frame.command() == command
    assert frame.body().endswith(struct.pack(">I", len(metadata)) + metadata + payload)


@MANY
@given(st.integers(0, 2**64 - 1), st.binary(max_size=4))
def test_a_varint_is_decoded_to_its_encoded_value(value: int, behind: bytes) -> None:
    data = encode_varint(value)
    assert decode_varint(b"\x00" + data + behind, 1) == (value, len(data) + 1)


@MANY
@given(st.integers(0, 14), st.binary(max_size=4))
def test_a_varint_longer_than_ten_bytes_is_refused(high_bytes: int, behind: bytes) -> None:
    data = b"\xff" * high_bytes + behind
    if any(byte < 0x80 for byte in data[:10]):
        assert decode_varint(data, 0)[1] <= 10
    else:
        with pytest.raises(RemoteProtocolError):
            decode_varint(data, 0)
