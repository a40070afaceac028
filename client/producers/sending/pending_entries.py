"""A producer's entries that have no receipt yet, which are resent after a reconnection."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.messages.message_id import MessageId
from proto.names import partition_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import proto.PulsarApi_pb2 as pb
    from client.connection.cnx import ClientCnx
    from client.messages.chunked_message import Chunks
    from client.producers.sending.pending_message import PendingMessage


class Answers:
    """A writer of message ids into the futures that ``send`` calls wait for.

    Args:
        topic: Full name of the topic or partition.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._partition = partition_index(topic)

    def answer(self, entry: PendingEntry, position: pb.MessageIdData) -> None:
        """Complete the sends of an acknowledged entry, each with the id of its message.

        A chunked message gets its id with its last chunk.
        """
        ledger_id, entry_id = MessageId.from_proto(position).entry
        if entry.chunks is not None:
            self._answer_part(entry.messages[0], entry.chunks, ledger_id, entry_id)
            return
        partition, topic, count = self._partition, self._topic, len(entry.messages)
        if count == 1:
            result = entry.messages[0].result
            if not result.done():
                result.set_result(MessageId(partition, ledger_id, entry_id, topic_name=topic))
            return
        for index, message in enumerate(entry.messages):
            if not message.result.done():
                message.result.set_result(
                    MessageId(
                        partition,
                        ledger_id,
                        entry_id,
                        index,
                        batch_size=count,
                        topic_name=topic,
                    )
                )

    def _answer_part(
        self, message: PendingMessage, chunks: Chunks, ledger_id: int, entry_id: int
    ) -> None:
        """Store the first chunk's id; set the message's id after its last chunk."""
        ids = (self._partition, ledger_id, entry_id)
        if chunks.first is None and chunks.message.chunk_count > 1:
            chunks.first = MessageId(*ids, topic_name=self._topic)
        if chunks.all_answered and not message.result.done():
            message.result.set_result(
                MessageId(*ids, topic_name=self._topic, first_chunk=chunks.first)
            )


class Flushers:
    """The callers waiting in ``flush``, each with the last message it waits for.

    Holds one item for each caller, which cancellation of the caller removes.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._errors: dict[asyncio.Future[None], Exception] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait_for(self, serial: int) -> Exception | None:
        """Wait until all messages up to a serial number have a receipt or an error.

        Return their first error, or None if all were sent.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting[done] = serial
        try:
            await done
            return self._errors.get(done)
        finally:
            self._waiting.pop(done, None)
            self._errors.pop(done, None)

    def failed(self, serial: int, error: Exception) -> None:
        """Record the error of a message for the callers that wait for it."""
        for done, newest in self._waiting.items():
            if newest >= serial:
                self._errors.setdefault(done, error)

    def oldest_is(self, serial: int | None) -> None:
        """Wake the callers whose messages are all older than the oldest pending one.

        ``serial`` is the oldest pending message's number; None if no message is pending.
        """
        for done, newest in self._waiting.items():
            if serial is not None and newest >= serial:
                return  # Later waiters await newer messages.
            if not done.done():
                done.set_result(None)


@dataclass(slots=True, eq=False)
class PendingEntry:
    """An entry for which the broker has not sent a receipt yet.

    Attributes:
        sequence_id: The first message's sequence id.
        parts: The frame: head and payload.
        messages: The entry's messages; for a chunk, the chunked message.
        size_bytes: Payload bytes before compression.
        chunks: All chunks of the message, if the entry is a chunk.
    """

    sequence_id: int
    parts: tuple[bytes, bytes | memoryview]
    messages: Sequence[PendingMessage]
    size_bytes: int
    chunks: Chunks | None = None

    @property
    def places(self) -> int:
        """Number of queue slots that the entry uses: one for each message, or one for a chunk."""
        return 1 if self.chunks is not None else len(self.messages)


class PendingEntries:
    """A producer's entries that have no receipt, sent or not, in sending order.

    Under backpressure, entries stay here, where their memory is counted already. Their number is
    bounded, because every message holds a queue slot and memory.
    """

    def __init__(self) -> None:
        self._entries: deque[PendingEntry] = deque()
        self._unsent: deque[PendingEntry] = deque()
        self._cnx: ClientCnx | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[PendingEntry]:
        return iter(self._entries)

    @property
    def first(self) -> PendingEntry | None:
        """The oldest entry without a receipt, or None."""
        return self._entries[0] if self._entries else None

    def add(self, entry: PendingEntry) -> None:
        """Append an entry, and write it now if the connection is writable."""
        self._entries.append(entry)
        cnx = self._cnx
        if cnx is None:
            return
        if self._unsent or not cnx.outbound.writable:
            self._unsent.append(entry)
            cnx.outbound.on_writable(self._write)
        else:
            cnx.turn_writer.add(*entry.parts)

    def pop_first(self) -> PendingEntry:
        """Remove and return the oldest entry."""
        entry = self._entries.popleft()
        if self._unsent and self._unsent[0] is entry:
            self._unsent.popleft()
        return entry

    def take_out(self, entry: PendingEntry) -> None:
        """Remove an entry, which need not be the oldest."""
        if entry is self.first:
            self.pop_first()
            return
        for entries in (self._entries, self._unsent):
            with suppress(ValueError):
                entries.remove(entry)

    def drop_parts_of(self, message: PendingMessage) -> int:
        """Remove all chunks of a message, which are adjacent; return their number."""
        before = len(self._entries)
        for entries in (self._entries, self._unsent):
            while entries and entries[0].messages[0] is message:
                entries.popleft()
            while entries and entries[-1].messages[0] is message:
                entries.pop()
        if len(self._entries) < before:
            return before - len(self._entries)
        for kind in ("_entries", "_unsent"):
            kept = deque(one for one in getattr(self, kind) if message is not one.messages[0])
            setattr(self, kind, kept)
        return before - len(self._entries)

    def attach(self, cnx: ClientCnx) -> None:
        """Write all entries again in their order, on a new connection."""
        self._cnx = cnx
        self._unsent = deque(self._entries)
        self._write()

    def detach(self) -> None:
        """Stop writing entries until there is a new connection."""
        if self._cnx is not None:
            self._cnx.outbound.forget_listener(self._write)
        self._cnx = None
        self._unsent.clear()

    def _write(self) -> None:
        """Write entries while the connection is writable; continue once it is writable again."""
        cnx = self._cnx
        if cnx is None:
            return
        while self._unsent and cnx.outbound.writable:
            cnx.turn_writer.add(*self._unsent.popleft().parts)
        if self._unsent:
            cnx.outbound.on_writable(self._write)
