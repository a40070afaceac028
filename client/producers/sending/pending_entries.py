"""Entries without a receipt: what was sent, what is to be sent, and all of it again."""

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
    """An entry that the broker has not answered for.

    Attributes:
        sequence_id: The first message's.
        parts: Its frame: the head, and the payload.
        messages: Those in it; for a part of a message, that message.
        size_bytes: Their payloads, before they were compressed.
        chunks: Which parts there are, if it is one.
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
        """Places that it takes: its messages', or a part's one."""
        return 1 if self.chunks is not None else len(self.messages)


class PendingEntries:
    """The entries of one producer in the order of sending, and how far they were written.

    While the connection takes no more they stay here, where their memory is counted already.
    Bound: their messages have their places and memory.
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
        """The oldest."""
        return self._entries[0] if self._entries else None

    def add(self, entry: PendingEntry) -> None:
        """Take one more, and write it if the connection takes it."""
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
        """Take the oldest out."""
        entry = self._entries.popleft()
        if self._unsent and self._unsent[0] is entry:
            self._unsent.popleft()
        return entry

    def take_out(self, entry: PendingEntry) -> None:
        """Take one out, wherever it stands."""
        if entry is self.first:
            self.pop_first()
            return
        for entries in (self._entries, self._unsent):
            with suppress(ValueError):
                entries.remove(entry)

    def drop_parts_of(self, message: PendingMessage) -> int:
        """Take out the parts of a message, which stand together; return how many there were."""
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
        """Write everything, in order, on a connection that serves the producer from now on."""
        self._cnx = cnx
        self._unsent = deque(self._entries)
        self._write()

    def detach(self) -> None:
        """Write nothing until there is a connection again."""
        if self._cnx is not None:
            self._cnx.outbound.forget_listener(self._write)
        self._cnx = None
        self._unsent.clear()

    def _write(self) -> None:
        """Write while the connection takes it; go on when it takes more."""
        cnx = self._cnx
        if cnx is None:
            return
        while self._unsent and cnx.outbound.writable:
            cnx.turn_writer.add(*self._unsent.popleft().parts)
        if self._unsent:
            cnx.outbound.on_writable(self._write)
