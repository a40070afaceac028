"""A listing's answer is the bytes protobuf would write, made without protobuf."""

import struct
import tracemalloc

import pytest

import proto.PulsarApi_pb2 as pb
from broker.listing.responses import topics_response
from broker.topic_lists.sequence import EMPTY_LISTING, TopicListing, TopicSequence
from proto import topics_response as module
from proto.errors import RemoteProtocolError
from proto.frames import FrameDecoder, encode_command
from proto.topic_hash import EMPTY_HASH, topics_hash
from proto.topics_response import (
    TopicsAnswer,
    TopicsResponse,
    TopicsTail,
    read_topics_head,
)

# The first id of each length, 1 to 10 bytes, and the last of all.
REQUEST_IDS = [0, *(2 ** (7 * size) for size in range(1, 10)), 2**64 - 1]
NAMES = [f"persistent://tenant/ns/{number:05d}" for number in range(5_000)]


def listing_of(*groups: list[str]) -> TopicListing:
    return TopicListing(
        *[TopicSequence.from_names(name.encode() for name in names) for names in groups]
    )


def by_protobuf(
    request_id: int, names: list[str], *, filtered: bool = False, changed: bool = True
) -> bytes:
    response = pb.CommandGetTopicsOfNamespaceResponse(
        request_id=request_id,
        topics=names,
        filtered=filtered,
        topics_hash=topics_hash(names),
        changed=changed,
    )
    return encode_command(
        pb.BaseCommand(
            type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
            getTopicsOfNamespaceResponse=response,
        )
    )


def answer_of(frame: bytes, pieces: int = 1) -> TopicsAnswer:
    """Receive a frame in a number of chunks."""
    decoder = FrameDecoder()
    size = -(-len(frame) // pieces)
    for start in range(0, len(frame), size):
        decoder.feed(frame[start : start + size])
    received = decoder.next_frame()
    assert received is not None
    found = read_topics_head(received.body()[:48])
    assert found is not None
    return TopicsAnswer(received.total_size, received.parts, found[1])


def test_a_listing_sums_up_its_sequences() -> None:
    persistent, other = NAMES[:3], ["non-persistent://tenant/ns/x"]
    listing = listing_of(other, persistent)
    assert list(listing.names()) == other + persistent
    assert (len(listing), listing.hash) == (4, topics_hash(other + persistent))
    assert listing.estimated_bytes == sum(len(name) + 32 for name in other + persistent)
    assert sum(map(len, listing.wire_parts())) == listing.totals.wire_bytes
    assert repr(listing) == f"<TopicListing 4 names, {listing.totals.wire_bytes} bytes>"


def test_an_empty_listing_has_the_empty_hash() -> None:
    assert (len(EMPTY_LISTING), EMPTY_LISTING.hash, EMPTY_LISTING.wire_parts()) == (
        0,
        EMPTY_HASH,
        [],
    )


@pytest.mark.parametrize("request_id", REQUEST_IDS)
@pytest.mark.parametrize(("filtered", "changed"), [(False, True), (True, False)])
def test_a_response_equals_the_bytes_written_by_protobuf(request_id, filtered, changed) -> None:
    listing = listing_of(["non-persistent://t/n/x"], ["persistent://t/n/\ue000\U0001f600"])
    response = topics_response(
        request_id, listing, listing.hash, filtered=filtered, changed=changed
    )
    expected = by_protobuf(request_id, list(listing.names()), filtered=filtered, changed=changed)
    assert b"".join(response.buffers) == expected
    assert (response.size, response.command_bytes) == (len(expected), len(expected) - 8)


def test_a_response_of_many_blocks_sends_the_blocks_without_a_copy() -> None:
    listing = listing_of(NAMES)
    response = topics_response(7, listing, listing.hash, filtered=False, changed=True)
    parts = listing.wire_parts()
    assert len(parts) > 1
    assert all(sent is part for sent, part in zip(response.buffers[1:-1], parts, strict=True))
    assert b"".join(response.buffers) == by_protobuf(7, NAMES)
    assert response.joined().buffers == [by_protobuf(7, NAMES)]
    assert response.joined().command_bytes == response.command_bytes


@pytest.mark.parametrize("request_id", REQUEST_IDS)
def test_the_request_id_is_found_at_the_start_of_a_response(request_id: int) -> None:
    frame = by_protobuf(request_id, NAMES)
    found = read_topics_head(frame[4:52])
    assert found is not None
    assert found[0] == request_id
    assert frame[4 + found[1] :].startswith(b"\x12")


def command_with(body: bytes) -> bytes:
    """Return the head of a GET_TOPICS_OF_NAMESPACE_RESPONSE with the given body."""
    inner = b"\x08\x21\x8a\x02" + bytes((len(body),)) + body
    return struct.pack(">I", len(inner)) + inner


@pytest.mark.parametrize(
    "head",
    [
        encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))[4:],
        command_with(b"\x12\x01a\x08\x07"),  # names first
        command_with(b"\x18\x01\x08\x07"),  # filtered first
        command_with(b""),
        command_with(b"\x08"),  # no id behind the tag
        command_with(b"\x08" + b"\xff" * 11),  # an unterminated id
        struct.pack(">I", 9) + b"\x8a\x02\x05\x08\x07\x12\x00\x08\x21",  # body before type
        struct.pack(">I", 4) + b"\x08\x21\x8a\x02",
        b"\x00\x00",
        b"",
    ],
)
def test_a_head_with_an_unusual_field_order_is_not_parsed(head: bytes) -> None:
    assert read_topics_head(head) is None


@pytest.mark.parametrize("received_id", [0, 2**63])
@pytest.mark.parametrize("request_id", REQUEST_IDS)
def test_a_response_is_forwarded_under_a_different_request_id(
    received_id: int, request_id: int
) -> None:
    answer = answer_of(by_protobuf(received_id, NAMES), pieces=7)
    response = answer.addressed_to(request_id)
    assert b"".join(response.buffers) == by_protobuf(request_id, NAMES)
    assert response.size == len(by_protobuf(request_id, NAMES))


def test_a_response_received_in_small_chunks_is_forwarded() -> None:
    # The request id lies in a separate chunk
    frame = by_protobuf(2**63, NAMES[:50])
    answer = answer_of(frame, pieces=len(frame) // 3)
    response = answer.addressed_to(7)
    assert b"".join(response.buffers) == by_protobuf(7, NAMES[:50])


def test_a_response_is_forwarded_without_a_copy() -> None:
    answer = answer_of(by_protobuf(1, NAMES), pieces=3)
    first, second = answer.addressed_to(1), answer.addressed_to(2)
    assert all(a is b for a, b in zip(first.buffers[1:], second.buffers[1:], strict=True))
    assert answer.command_bytes == len(by_protobuf(1, NAMES)) - 8
    assert answer.rest_bytes == sum(map(len, answer.rest))


def test_a_response_can_be_decoded() -> None:
    response = answer_of(by_protobuf(9, NAMES, filtered=True)).decoded()
    assert list(response.topics) == NAMES
    assert (response.request_id, response.filtered, response.changed) == (0, True, True)
    assert response.topics_hash == topics_hash(NAMES)


@pytest.mark.parametrize(
    ("topics", "sentence"),
    [(b"\x12\x02\xff\xfe", r"String field had bad UTF-8"),
     (b"\x12\x7fx", "a topic list is not protobuf")],
)  # fmt: skip
def test_a_malformed_response_is_a_protocol_error_of_the_peer(topics: bytes, sentence: str) -> None:
    head = command_with(b"\x08\x07" + topics)
    found = read_topics_head(head)
    assert found is not None
    answer = TopicsAnswer(len(head), [memoryview(head)], found[1])
    with pytest.raises(RemoteProtocolError, match=sentence):
        answer.decoded()


@pytest.mark.parametrize("step_bytes", [1, 3, 100, 65_536])
@pytest.mark.parametrize("pieces", [1, 7])
def test_a_response_parsed_in_pieces_equals_the_whole(step_bytes, pieces, monkeypatch) -> None:
    # The length of a name has one byte below 128, two below 16,384, and three.
    monkeypatch.setattr(module, "PIECE_BYTES", step_bytes)
    names = [*NAMES[:20], "", "é", *("x" * size for size in (127, 128, 16_383, 16_384)), "a"]
    answer = answer_of(by_protobuf(9, names, filtered=True), pieces)
    merged = pb.CommandGetTopicsOfNamespaceResponse()
    for piece in answer.pieces():
        merged.MergeFrom(piece)
    assert merged == answer.decoded()
    assert list(merged.topics) == names


def test_the_size_of_a_piece_is_bounded() -> None:
    answer = answer_of(by_protobuf(9, NAMES))
    sizes = [piece.ByteSize() for piece in answer.pieces()]
    assert len(sizes) > 2
    assert max(sizes) < module.PIECE_BYTES + 1_000


@pytest.mark.parametrize("topics", [b"\x12\x02\xff\xfe", b"\x12\x7fx", b"\x0b\x12\x01a"])
def test_a_malformed_response_cannot_be_parsed_in_pieces(topics: bytes) -> None:
    answer = answer_with(b"\x12\x01a" * 10 + topics)
    with pytest.raises(RemoteProtocolError, match="a topic list is not protobuf"):
        list(answer.pieces())


def test_a_private_copy_has_the_same_bytes_in_separate_buffers(monkeypatch) -> None:
    monkeypatch.setattr(module, "COPY_BYTES", 1_000)
    shared = TopicsResponse([b"a" * 600, b"b" * 600, b"c" * 5_000, b"d"], 6_193)
    steps = shared.copying()
    count = 0
    try:
        while True:
            next(steps)
            count += 1
    except StopIteration as done:
        copy: TopicsResponse = done.value
    assert (count, len(copy.buffers)) == (2, 3)
    assert b"".join(copy.buffers) == b"".join(shared.buffers)
    assert copy.command_bytes == shared.command_bytes
    assert not {id(one) for one in copy.buffers} & {id(one) for one in shared.buffers}


def answer_with(body: bytes, pieces: int = 1) -> TopicsAnswer:
    """Receive an answer with given bytes behind the request id."""
    return answer_of(frame_with(b"\x08\x07" + body), pieces)


def frame_with(response: bytes) -> bytes:
    command = command_with(response)
    return struct.pack(">I", len(command)) + command


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("names", [NAMES, NAMES[:1], []], ids=len)
def test_the_fields_behind_the_topic_names_are_read_without_decoding(names, filtered) -> None:
    answer = answer_of(by_protobuf(1, names, filtered=filtered), pieces=3)
    assert answer.tail() == TopicsTail(filtered, topics_hash(names), changed=True)
    assert answer.has_names is bool(names)


def test_an_unchanged_response_without_names_is_read_from_its_tail() -> None:
    listing = topics_response(1, EMPTY_LISTING, "527a576a", filtered=True, changed=False)
    answer = answer_of(b"".join(listing.buffers))
    assert answer.tail() == TopicsTail(filtered=True, topics_hash="527a576a", changed=False)
    assert not answer.has_names


@pytest.mark.parametrize("pieces", range(1, 60))
def test_the_fields_behind_the_topic_names_may_span_several_chunks(pieces: int) -> None:
    answer = answer_of(by_protobuf(1, NAMES[:2]), pieces=pieces)
    assert answer.tail() == TopicsTail(False, topics_hash(NAMES[:2]), changed=True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x12\x04name",
        b"\x12\x04name\x18\x00\x22\x0812345678",
        b"\x12\x04name\x18\x00\x28\x01\x22\x0812345678",
        b"\x12\x04name\x18\x02\x22\x0812345678\x28\x01",
        b"\x12\x04name\x18\x00\x22\x0812345678\x28\x02",
        b"\x12\x04name\x18\x00\x22\x0712345678\x28\x01",
        b"\x12\x04name\x18\x00\x22\x081234567G\x28\x01",
        b"\x12\x04name\x18\x00\x22\x0812345678\x28\x01\x30\x01",
    ],
    ids=repr,
)
def test_a_response_with_an_unusual_end_has_no_readable_tail(body: bytes) -> None:
    assert answer_with(body).tail() is None


def test_reading_the_tail_copies_no_topic_names() -> None:
    # A chunk much larger than the remainder
    answer = answer_of(by_protobuf(1, NAMES))
    tracemalloc.start()
    answer.tail()
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 10_000 < answer.rest_bytes


def kept_bytes(answer: TopicsAnswer) -> int:
    """Return the size of all chunks kept alive by an answer."""
    return sum({id(part.obj): len(part.obj) for part in answer.rest}.values())  # type: ignore[arg-type]


@pytest.mark.parametrize("chunk_bytes", [7_000, 65_536, 262_144])
def test_a_response_keeps_at_most_twice_its_size_alive(chunk_bytes: int) -> None:
    """A read of 256 KiB may bring fifty answers, each waiting for a different client."""
    frames = b"".join(
        topics_response(
            number, listing_of(NAMES[: 40 * number + 1]), "0" * 8, filtered=False, changed=True
        )
        .joined()
        .buffers[0]
        for number in range(60)
    )
    decoder, answers = FrameDecoder(), []
    for start in range(0, len(frames), chunk_bytes):
        decoder.feed(frames[start : start + chunk_bytes])
        while (received := decoder.next_frame()) is not None:
            found = read_topics_head(received.start(48))
            assert found is not None
            answers.append(TopicsAnswer(received.total_size, received.parts, found[1]))
    assert len(answers) == 60
    assert all(kept_bytes(answer) <= 2 * answer.rest_bytes for answer in answers)
    assert all(len(answer.decoded().topics) == 40 * n + 1 for n, answer in enumerate(answers))


def test_a_large_response_is_not_copied() -> None:
    frame = by_protobuf(1, NAMES)
    answer = answer_of(frame)
    assert [len(part.obj) for part in answer.rest] == [len(frame)]  # type: ignore[arg-type]
