import random
from collections.abc import Sequence

import pytest

import proto.PulsarApi_pb2 as pb
from client.messages.chunked_message import ChunkedMessage
from client.messages.chunks import MOST_CHUNKS, ChunkAssembly
from client.messages.entry import Entry
from client.messages.errors import BrokenEntryError, TooLargeEntryError
from client.messages.message_id import MessageId
from client.messages.outgoing import OutgoingMessage
from tests.support.clocks.manual_clock import ManualClock
from tests.support.messages.entries import NOW, PRODUCER, received
from tests.support.peers.frames import with_checksum

LIMIT = 300
DATA = random.Random(15).randbytes(1_000)


class Assembling:
    """An assembly on a stopped clock.

    Attributes:
        dropped: Dropped entry ids, and whether they are acknowledged.
    """

    def __init__(self, **options: object) -> None:
        self.clock = ManualClock()
        self.dropped: list[tuple[list[int], bool]] = []
        self.assembly = ChunkAssembly(self.clock, self._drop, **options)

    def _drop(self, ids: Sequence[MessageId], acknowledge: bool) -> None:
        self.dropped.append(([one.entry_id() for one in ids], acknowledge))

    def add(self, *chunks: Entry) -> bytes | None:
        """Add chunks; return the message completed by the last chunk."""
        whole = None
        for chunk in chunks:
            whole = self.assembly.add(chunk)
        return whole.take()[0].data() if whole else None

    @property
    def is_empty(self) -> bool:
        return len(self.assembly) == self.assembly.pending_bytes == 0


def chunks_of(number: int, first_entry: int, data: bytes = DATA) -> list[Entry]:
    """Return the chunks of a message as received."""
    message = ChunkedMessage(OutgoingMessage(data, number), PRODUCER, NOW, LIMIT)
    return [
        received(message.entry(chunk), first_entry + chunk) for chunk in range(message.chunk_count)
    ]


def chunk(payload: bytes, entry_id: int = 1, **fields: object) -> Entry:
    """Return a chunk with the given metadata."""
    fields = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4} | fields
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=NOW, **fields)
    return received(with_checksum(metadata, payload), entry_id)


@pytest.fixture
def assembling() -> Assembling:
    return Assembling()


def test_the_last_chunk_completes_the_message() -> None:
    chunks = chunks_of(0, 10)
    assembling = Assembling()
    assert assembling.add(*chunks[:-1]) is None
    assert assembling.assembly.pending_bytes == sum(len(one.payload) for one in chunks[:-1])
    whole = assembling.assembly.add(chunks[-1])
    assert whole is not None
    (message,) = whole.take()
    assert message.data() == DATA
    assert [one.entry_id() for one in whole.head.chunk_ids] == list(range(10, 10 + len(chunks)))
    assert message.message_id().entry_id() == 10 + len(chunks) - 1
    assert message.message_id().first_chunk == whole.head.chunk_ids[0]
    assert assembling.is_empty
    assert not assembling.dropped


def test_chunks_of_several_messages_may_be_interleaved() -> None:
    one, other = chunks_of(0, 10), chunks_of(1, 20, DATA[::-1])
    assembling = Assembling()
    found = [assembling.add(chunk) for pair in zip(one, other, strict=True) for chunk in pair]
    assert [data for data in found if data] == [DATA, DATA[::-1]]


@pytest.mark.parametrize("acknowledges", [False, True])
def test_the_oldest_incomplete_message_is_dropped_at_the_limit(acknowledges: bool) -> None:
    assembling = Assembling(most_messages=2, acknowledges_oldest=acknowledges)
    first, second, third = chunks_of(0, 10), chunks_of(1, 20), chunks_of(2, 30)
    assembling.add(*first[:2], second[0])
    assembling.add(third[0])
    assert assembling.dropped == [([10, 11], acknowledges)]
    assert assembling.add(*second[1:]) == DATA
    assert assembling.add(*third[1:]) == DATA
    assert assembling.is_empty


def test_an_incomplete_message_is_acknowledged_when_expired() -> None:
    assembling = Assembling(expiry_seconds=60)
    second = chunks_of(1, 20)
    assembling.add(chunks_of(0, 10)[0])
    assembling.clock.advance(40)
    assembling.add(*second[:2])
    assembling.clock.advance(20)
    assert assembling.dropped == [([10], True)]
    assert len(assembling.assembly) == 1
    assembling.clock.advance(40)
    assert assembling.dropped[1:] == [([20, 21], True)]
    assert assembling.is_empty


def test_without_expiry_incomplete_chunks_are_kept() -> None:
    assembling = Assembling(expiry_seconds=0)
    chunks = chunks_of(0, 10)
    assembling.add(*chunks[:-1])
    assembling.clock.advance(1_000_000)
    assert assembling.add(chunks[-1]) == DATA


def test_a_limit_of_0_allows_any_number_of_incomplete_messages() -> None:
    assembling = Assembling(most_messages=0)
    for number in range(50):
        assembling.add(chunks_of(number, 10 * number)[0])
    assert not assembling.dropped
    assert len(assembling.assembly) == 50


def test_a_chunk_beyond_the_announced_message_size_is_refused(assembling: Assembling) -> None:
    assembling.add(chunk(b"ab", num_chunks_from_msg=3))
    with pytest.raises(BrokenEntryError):
        assembling.add(chunk(b"abc", entry_id=2, chunk_id=1, num_chunks_from_msg=3))
    assert assembling.is_empty


def test_a_missing_chunk_drops_earlier_and_later_chunks_of_its_message(
    assembling: Assembling,
) -> None:
    chunks = chunks_of(0, 10)
    assert assembling.add(chunks[0], chunks[2]) is None
    assert assembling.dropped == [([10, 12], False)]
    assert assembling.add(chunks[3]) is None
    assert assembling.dropped[1:] == [([13], False)]
    assert assembling.is_empty


def test_an_expired_chunk_without_its_first_chunk_is_acknowledged() -> None:
    assembling = Assembling(expiry_seconds=60)
    assembling.clock.advance(NOW / 1_000 + 61)
    assembling.add(chunks_of(0, 10)[1])
    assert assembling.dropped == [([11], True)]


def test_a_chunk_redelivered_by_the_broker_is_ignored(assembling: Assembling) -> None:
    chunks = chunks_of(0, 10)
    assembling.add(*chunks[:2])
    assembling.add(chunks[1])
    # The second copy is not acknowledged
    assert not assembling.dropped
    assert assembling.add(*chunks[2:]) == DATA


def test_a_chunk_sent_twice_by_the_producer_is_acknowledged(assembling: Assembling) -> None:
    chunks = chunks_of(0, 10)
    assembling.add(*chunks[:2])
    assembling.add(chunks_of(0, 90)[1])
    assert assembling.dropped == [([91], True)]
    assert assembling.add(*chunks[2:]) == DATA


def test_a_message_redelivered_by_the_broker_is_assembled_anew(assembling: Assembling) -> None:
    chunks = chunks_of(0, 10)
    assembling.add(*chunks[:2])
    assert assembling.add(*chunks_of(0, 10)) == DATA
    assert not assembling.dropped


def test_a_message_sent_again_by_the_producer_replaces_its_incomplete_chunks(
    assembling: Assembling,
) -> None:
    assembling.add(*chunks_of(0, 10)[:2])
    assert assembling.add(*chunks_of(0, 20)) == DATA
    assert assembling.dropped == [([10, 11], True)]
    assert assembling.is_empty


@pytest.mark.parametrize(
    "second",
    [
        {"payload": b"abc"},  # More than announced.
        {"payload": b"a"},  # Less.
        {"payload": b"ab", "total_chunk_msg_size": 5},
        {"payload": b"ab", "num_chunks_from_msg": 3},
    ],
)
def test_a_chunk_that_contradicts_its_message_is_refused_as_broken(
    second: dict[str, object],
) -> None:
    assembling = Assembling()
    assembling.add(chunk(b"ab"))
    with pytest.raises(BrokenEntryError, match="4 bytes in 2 chunks"):
        assembling.add(chunk(entry_id=2, chunk_id=1, **second))
    assert assembling.dropped == [([1], True)]
    assert assembling.is_empty


@pytest.mark.parametrize(
    "fields",
    [
        {"total_chunk_msg_size": 0},
        {"total_chunk_msg_size": -1},
        {"num_chunks_from_msg": MOST_CHUNKS + 1},
    ],
)
def test_a_message_with_an_invalid_size_or_too_many_chunks_is_refused(
    fields: dict[str, object],
) -> None:
    assembling = Assembling()
    with pytest.raises(BrokenEntryError, match="at most"):
        assembling.add(chunk(b"ab", **fields))
    assert assembling.is_empty


def test_every_chunk_of_a_message_above_the_clients_size_limit_is_refused() -> None:
    assembling = Assembling()
    for number in range(2):
        with pytest.raises(TooLargeEntryError, match="raise memory_limit_bytes to its size"):
            assembling.add(chunk(b"ab", number, total_chunk_msg_size=2**31 - 1))
    assert assembling.is_empty
    assert assembling.dropped == []


def test_a_cleared_assembly_is_empty_and_expires_nothing(assembling: Assembling) -> None:
    assembling.add(chunks_of(0, 10)[0])
    assembling.assembly.clear()
    assembling.clock.advance(1_000)
    assert assembling.is_empty
    assert not assembling.dropped


def test_expiry_continues_after_the_assembly_was_cleared(assembling: Assembling) -> None:
    assembling.add(chunks_of(0, 10)[0])
    assembling.assembly.clear()
    assembling.add(chunks_of(1, 20)[0])
    assembling.clock.advance(61)
    assert assembling.dropped == [([20], True)]


@pytest.mark.parametrize("known", [0, 1])
def test_a_negative_chunk_id_drops_the_chunk_and_its_incomplete_message(known: int) -> None:
    assembling = Assembling()
    assembling.add(*[chunk(b"ab")] * known)
    assert assembling.add(chunk(b"ab", 2, chunk_id=-1)) is None
    assert assembling.dropped == [([1, 2] if known else [2], False)]
    assert assembling.is_empty
