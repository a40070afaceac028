"""Entries without a receipt: written, unwritten, and rewritten after a reconnection."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from client.connection.cnx import ClientCnx
    from client.producers.sending.chunking import Chunks
    from client.producers.sending.pending_message import PendingMessage


class PendingEntry:
    """An entry without a receipt.

    Attributes:
        sequence_id: The first message's sequence id.
        parts: The frame: head and payload.
        messages: The entry's messages; for a chunk, the chunked message.
        size_bytes: Payload bytes before compression.
        chunks: The message's chunks, for a chunk.
    """

    __slots__ = ("chunks", "messages", "parts", "sequence_id", "size_bytes")

    def __init__(
        self,
        sequence_id: int,
        parts: tuple[bytes, bytes | memoryview],
        messages: Sequence[PendingMessage],
        size_bytes: int,
        chunks: Chunks | None = None,
    ) -> None:
        self.sequence_id = sequence_id
        self.parts = parts
        self.messages = messages
        self.size_bytes = size_bytes
        self.chunks = chunks

    @property
    def places(self) -> int:
        """Number of queue slots: one per message, or one for a chunk."""
        return 1 if self.chunks is not None else len(self.messages)


class PendingEntries:
    """A producer's entries in sending order, with the write position.

    Behind backpressure entries stay here, where their memory is counted already. Bounded: every
    message holds a queue slot and memory.
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
        """The oldest entry."""
        return self._entries[0] if self._entries else None

    def add(self, entry: PendingEntry) -> None:
        """Append an entry, and write the entry if the connection is writable."""
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
        """Remove the oldest entry."""
        entry = self._entries.popleft()
        if self._unsent and self._unsent[0] is entry:
            self._unsent.popleft()
        return entry

    def take_out(self, entry: PendingEntry) -> None:
        """Remove an entry at any position."""
        if entry is self.first:
            self.pop_first()
            return
        for entries in (self._entries, self._unsent):
            with suppress(ValueError):
                entries.remove(entry)

    def drop_parts_of(self, message: PendingMessage) -> int:
        """Remove a message's chunks, which are adjacent; return their number."""
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
        """Write all entries, in order, on a new connection."""
        self._cnx = cnx
        self._unsent = deque(self._entries)
        self._write()

    def detach(self) -> None:
        """Stop writing until the next connection."""
        if self._cnx is not None:
            self._cnx.outbound.forget_listener(self._write)
        self._cnx = None
        self._unsent.clear()

    def _write(self) -> None:
        """Write until backpressure; continue when writable."""
        cnx = self._cnx
        if cnx is None:
            return
        while self._unsent and cnx.outbound.writable:
            cnx.turn_writer.add(*self._unsent.popleft().parts)
        if self._unsent:
            cnx.outbound.on_writable(self._write)
