"""Built entries are read back unchanged; damaged entries are refused and take no memory."""

import random
import struct
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from client.messages.chunked_message import ChunkedMessage
from client.messages.chunks import ChunkAssembly
from client.messages.compression import compress, decompress
from client.messages.enums import CompressionType
from client.messages.errors import BrokenEntryError
from client.messages.message_id import MessageId
from client.messages.outgoing import OutgoingMessage, SendingProducer, message_entry
from tests.support.clocks.manual_clock import ManualClock
from tests.support.examples import many
from tests.support.messages.entries import NOW, SOURCE, batch_of, entry_bytes, received
from tests.support.peers.frames import with_checksum

MANY = settings(max_examples=many(150), deadline=None)
MOST = settings(max_examples=many(400), deadline=None)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PAYLOADS = st.one_of(st.binary(max_size=300), st.builds(bytes, st.integers(0, 20_000)))
PROPERTIES = st.none() | st.dictionaries(TEXT, TEXT, max_size=3)
MESSAGES = st.builds(
    OutgoingMessage,
    st.none() | PAYLOADS,
    st.integers(0, 2**64 - 1),
    PROPERTIES,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | st.integers(0, 2**64 - 1),
)
COMPRESSIONS = st.sampled_from(CompressionType)
PRODUCERS = st.builds(
    SendingProducer, st.just(1), TEXT, COMPRESSIONS, st.sampled_from([b"", b"12345678"])
)
LIMITED = replace(SOURCE, max_uncompressed_bytes=100_000)


def parts_sent(message: OutgoingMessage) -> tuple[object, ...]:
    return (
        message.payload or b"",
        message.payload is None,
        message.sequence_id,
        message.properties or {},
        message.partition_key or "",
        message.ordering_key or "",
        message.event_timestamp or 0,
    )


def parts_received(data: bytes | object) -> list[tuple[object, ...]]:
    entry = received(data)
    messages = []
    while entry.left:
        messages += entry.take(2)
    return [
        (
            one.data(),
            one.has_null_value(),
            one.sequence_id(),
            one.properties(),
            one.partition_key(),
            one.ordering_key(),
            one.event_timestamp(),
        )
        for one in messages
    ]


@MANY
@given(messages=st.lists(MESSAGES, min_size=1, max_size=8), producer=PRODUCERS)
def test_a_built_batch_is_read_back_unchanged(messages, producer) -> None:
    assert parts_received(batch_of(messages, producer)) == [parts_sent(one) for one in messages]


@MANY
@given(message=MESSAGES, producer=PRODUCERS)
def test_a_built_message_is_read_back_unchanged(message, producer) -> None:
    assert parts_received(message_entry(message, producer, NOW)) == [parts_sent(message)]


@MANY
@given(messages=st.lists(MESSAGES, min_size=1, max_size=140), left=st.sets(st.integers(0, 139)))
def test_an_ack_set_selects_the_unacknowledged_messages_of_a_batch(messages, left) -> None:
    # GIVEN a batch, and its unacknowledged messages
    words = [0, 0, 0]
    for index in left:
        words[index >> 6] |= 1 << (index & 63)
    ack_set = [word - 2**64 if word >= 2**63 else word for word in words]
    # WHEN the batch is received
    found = received(batch_of(messages), ack_set=ack_set).take()
    # THEN exactly the unacknowledged messages are there
    assert [one.batch_index for one in found] == sorted(left & set(range(len(messages))))


@MANY
@given(
    message=MESSAGES,
    producer=PRODUCERS,
    limit=st.integers(500, 2_000),
    size=st.integers(0, 10_000),
    seed=st.integers(0, 9),
)
def test_received_chunks_are_assembled_into_the_message(
    message, producer, limit, size, seed
) -> None:
    # GIVEN a message that cannot be compressed
    message.payload = random.Random(seed).randbytes(size)
    chunked = ChunkedMessage(message, producer, NOW, limit)
    assembly = ChunkAssembly(ManualClock(), lambda _ids, _acknowledge: None)
    # WHEN its entries are sent, and received in order
    entries = [received(chunked.entry(at), at) for at in range(chunked.chunk_count)]
    assert all(len(one.payload) <= limit for one in entries)
    whole = None
    for entry in entries:
        assert whole is None
        whole = assembly.add(entry) if entry.is_chunk else entry
    # THEN the last entry completes the message
    assert whole is not None
    (found,) = whole.take()
    assert found.data() == message.payload
    assert found.properties() == (message.properties or {})
    assert len(assembly) == assembly.pending_bytes == 0


@MANY
@given(
    order=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40),
    most=st.integers(1, 3),
)
def test_chunks_in_any_order_are_assembled_dropped_or_counted(order, most) -> None:
    # GIVEN three messages of four chunks each, and copies of chunks in any order
    dropped: set[MessageId] = set()
    assembly = ChunkAssembly(ManualClock(), lambda ids, _acknowledge: dropped.update(ids), most)
    messages = [
        ChunkedMessage(OutgoingMessage(bytes(1_000), at), SendingProducer(1, "p"), NOW, 330)
        for at in range(3)
    ]
    came: dict[MessageId, int] = {}
    for at, (number, chunk) in enumerate(order):
        entry = received(messages[number].entry(chunk % messages[number].chunk_count), at)
        came[entry.head.message_id()] = len(entry.payload)
        # WHEN each is added
        whole = assembly.add(entry)
        if whole is not None:
            # THEN a complete message is right,
            assert whole.take()[0].data() == bytes(1_000)
            for one in whole.head.chunk_ids:
                del came[one]
        for one in dropped:
            came.pop(one, None)
        dropped.clear()
        # THEN a chunk is in a message, dropped, or held, and only held chunks' bytes are counted
        assert assembly.pending_bytes == sum(came.values())
        assert len(assembly) <= most


@MOST
@given(
    message=st.lists(MESSAGES, min_size=1, max_size=4),
    producer=PRODUCERS,
    damage=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    end=st.none() | st.integers(0, 10_000),
)
def test_a_damaged_entry_is_refused(message, producer, damage, end) -> None:
    # GIVEN an entry with changed bytes, or cut short
    data = entry_bytes(batch_of(message, producer))
    damaged = bytearray(data)
    for at, byte in damage:
        damaged[6 + at % (len(damaged) - 6)] = byte
    del damaged[end if end is not None else len(damaged) :]
    # WHEN the entry is read
    try:
        parts_received(bytes(damaged))
    except BrokenEntryError:
        # THEN the entry is refused
        return
    # THEN, or nothing was damaged
    assert damaged == data


@MOST
@given(
    payload=st.binary(max_size=200),
    head=st.binary(max_size=60),
    count=st.integers(-2, 2**31 - 1),
    compression=st.integers(0, 4),
    size=st.integers(0, 2**32 - 1),
)
@example(payload=b"\0\0\0\2\x18\xff", head=b"", count=1, compression=0, size=0)
@example(payload=b"\xff" * 8, head=b"\x58\x01", count=1, compression=0, size=0)
def test_an_entry_of_any_bytes_is_read_or_refused(
    payload: bytes, head: bytes, count: int, compression: int, size: int
) -> None:
    # GIVEN bytes of any kind, with a matching checksum
    metadata = pb.MessageMetadata(
        producer_name="p",
        sequence_id=0,
        publish_time=NOW,
        num_messages_in_batch=count,
        compression=pb.CompressionType.ValueType(compression),
        uncompressed_size=size,
    )
    tail = metadata.SerializeToString() + head
    data = struct.pack(">I", len(tail)) + tail + payload
    # WHEN the bytes are read THEN they are messages with readable parts, or refused in one way
    for given_data in (data, with_checksum(metadata, payload), payload):
        try:
            parts_received(given_data)
            entry = received(given_data, source=LIMITED)
            if entry.is_chunk:
                ChunkAssembly(ManualClock(), lambda _ids, _acknowledge: None).add(entry)
        except BrokenEntryError:
            pass


@MOST
@given(compression=COMPRESSIONS, data=st.binary(max_size=500), size=st.integers(0, 100_000))
def test_decompression_gives_the_announced_size_or_an_error(compression, data, size) -> None:
    for payload in (data, compress(compression, data)[:-1], compress(compression, data) + b"x"):
        try:
            found = decompress(compression.value, payload, size)
        except BrokenEntryError:
            continue
        assert compression is CompressionType.NONE or len(found) == size


@MANY
@given(
    st.builds(
        MessageId,
        st.integers(-1, 2**31 - 1),
        st.integers(-1, 2**63 - 1),
        st.integers(-1, 2**63 - 1),
        st.integers(-1, 2**31 - 1),
    )
)
def test_a_message_id_is_read_back_from_its_bytes(message_id: MessageId) -> None:
    assert MessageId.deserialize(message_id.serialize()) == message_id
