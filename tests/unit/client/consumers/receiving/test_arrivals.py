"""Arriving entries are counted; chunks are assembled, and schema versions awaited."""

import asyncio
import itertools
import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from client.consumers.options import ConsumerOptions
from client.consumers.receiving.arrivals import Arrivals
from client.messages.chunked_message import ChunkedMessage
from client.messages.entry import MAX_UNCOMPRESSED_BYTES, Entry
from client.messages.message import EntryHead
from client.messages.message_id import MessageId
from client.messages.outgoing import OutgoingEntry, OutgoingMessage, SendingProducer, message_entry
from client.schema import Schema
from proto.frames import Frame
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.messages.entries import (
    NOW,
    PRODUCER,
    TOPIC,
    batch_of,
    encrypted,
    entry_bytes,
    plain,
)


class Asked:
    """Versions known when a test permits."""

    def __init__(self) -> None:
        self.versions: set[bytes] = set()
        self.questions: list[bytes] = []
        self.told = asyncio.Event()

    def known(self, entry: EntryHead) -> bool:
        version = entry.metadata.schema_version
        return not version or version in self.versions

    async def learn(self, entry: EntryHead) -> None:
        if not self.known(entry):
            self.questions.append(entry.metadata.schema_version)
            await self.told.wait()


class Asking(Schema):
    """A schema that fetches versions."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(None, None, None, "asking")
        self._asked = asked

    def writer_schemas(self, *_: object) -> Asked:
        return self._asked


class Taken:
    """The consumer's side: arrived messages, and held entries."""

    def __init__(self) -> None:
        self.entries: list[int] = []
        self.held = self.held_bytes = 0
        self.sizes: list[int] = []
        self.dropped: list[int] = []

    def entry_arrived(self, entry: Entry, messages: int, size_bytes: int) -> None:
        self.entries.append(entry.head.entry_id)
        self.count_freed(messages, size_bytes)

    def count_arrived(self, messages: int, size_bytes: int) -> None:
        self.held += messages
        self.held_bytes += size_bytes
        self.sizes.append(size_bytes)

    def count_freed(self, messages: int, size_bytes: int) -> None:
        self.held -= messages
        self.held_bytes -= size_bytes

    def broken(self, *_: object) -> None: ...

    def chunks_dropped(self, ids: Sequence[MessageId], *, acknowledge: bool) -> None:
        self.dropped += [one.entry_id() for one in ids]


class Line:
    """Arrivals fed by a test."""

    def __init__(self) -> None:
        self.asked, self.taken = Asked(), Taken()
        cluster: Any = SimpleNamespace(clock=ManualClock())
        options = ConsumerOptions(schema=Asking(self.asked))
        self.arrivals = Arrivals(self.taken, cluster, TOPIC, options, MAX_UNCOMPRESSED_BYTES)

    def come(self, entry_id: int, version: bytes) -> None:
        """Feed an entry written by a schema version."""
        producer = SendingProducer(1, "p", schema_version=version)
        self.read(entry_id, message_entry(OutgoingMessage(b"x", 0), producer, NOW))

    def read(
        self,
        entry_id: int,
        entry: OutgoingEntry,
        ack_set: Sequence[int] = (),
        *,
        dropped: bool = False,
    ) -> None:
        """Feed an entry."""
        data = entry_bytes(entry)
        position = pb.MessageIdData(ledgerId=1, entryId=entry_id)
        command = pb.CommandMessage(consumer_id=1, message_id=position, ack_set=ack_set)
        whole = pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=command).SerializeToString()
        body = struct.pack(">I", len(whole)) + whole + data
        self.arrivals.read(command, Frame(len(body), (memoryview(body),)), dropped=dropped)


@pytest.fixture
async def line() -> Line:
    return Line()


async def test_an_entry_of_a_known_schema_version_or_without_a_version_does_not_wait(
    line: Line,
) -> None:
    line.asked.versions.add(b"0")
    line.come(1, b"")
    line.come(2, b"0")
    assert line.taken.entries == [1, 2]


async def test_entries_behind_an_unknown_schema_version_wait_in_order(line: Line) -> None:
    line.come(1, b"0")
    line.come(2, b"")
    line.come(3, b"0")
    await settle()
    assert (line.taken.entries, line.arrivals.waiting) == ([], 3)
    line.asked.versions.add(b"0")
    line.asked.told.set()
    await settle()
    assert (line.taken.entries, line.arrivals.waiting, line.taken.held) == ([1, 2, 3], 0, 0)
    assert line.asked.questions == [b"0"]


async def test_entries_waiting_for_a_schema_version_are_dropped_with_the_connection(
    line: Line,
) -> None:
    line.come(1, b"0")
    line.come(2, b"")
    await settle()
    line.arrivals.clear()
    line.come(3, b"")
    line.asked.told.set()
    await settle()
    assert (line.taken.entries, line.taken.held) == ([3], 0)


async def test_a_batch_takes_a_permit_for_each_of_its_unacknowledged_messages(line: Line) -> None:
    # Given a consumer that keeps all arrivals
    line.taken.count_freed = lambda *_: None  # type: ignore[method-assign]
    line.read(1, batch_of(plain(70)), ack_set=[0b11, -1])
    line.read(2, batch_of(plain(3)), dropped=True)
    assert line.taken.held == 2 + 6 + 3
    assert line.taken.entries == [1]


async def test_dropped_or_broken_entries_are_counted_and_freed_with_their_bytes(line: Line) -> None:
    line.read(1, batch_of([OutgoingMessage(bytes(1_000), 0)]), dropped=True)
    line.read(2, encrypted(300))
    assert all(size > 1_000 for size in line.taken.sizes)
    assert (line.taken.held, line.taken.held_bytes) == (0, 0)


async def test_chunks_are_held_until_their_message_is_complete(line: Line) -> None:
    large = ChunkedMessage(OutgoingMessage(bytes(1_000), 1), PRODUCER, NOW, 400)
    chunks = [large.entry(number) for number in range(large.chunk_count)]
    held = []
    for number, chunk in enumerate(chunks):
        line.read(number, chunk)
        held.append(line.taken.held_bytes)
    sizes = [len(chunk.payload) for chunk in chunks[:-1]]
    assert held == [*itertools.accumulate(sizes), 0]
    assert (line.taken.entries, line.taken.held, line.arrivals.incomplete) == (
        [len(chunks) - 1],
        0,
        0,
    )


async def test_chunks_of_an_incomplete_message_are_dropped_and_freed(line: Line) -> None:
    large = ChunkedMessage(OutgoingMessage(bytes(1_000), 1), PRODUCER, NOW, 400)
    line.read(0, large.entry(0))
    incomplete = line.arrivals.incomplete
    # When the second does not arrive
    line.read(2, large.entry(2))
    assert (incomplete, line.arrivals.incomplete) == (1, 0)
    assert (line.taken.held, line.taken.held_bytes) == (0, 0)
    assert line.taken.dropped == [0, 2]
