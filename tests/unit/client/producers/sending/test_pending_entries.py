"""Entries are written in order, as the connection permits, and again after reconnecting."""

from collections import deque
from collections.abc import Iterator
from typing import cast

import pytest

from client.connection.cnx import ClientCnx
from client.producers.sending.pending_entries import PendingEntries, PendingEntry
from client.producers.sending.pending_message import PendingMessage
from limiter.flow.outbound_buffer import OutboundBuffer, WriteBufferMarks
from tests.unit.client.producers.sending.messages import pending


class Cnx:
    """A scripted connection."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.outbound = OutboundBuffer(WriteBufferMarks())
        self.turn_writer = self

    def add(self, *parts: bytes) -> None:
        """Write an entry's parts."""
        self.written.append(b"".join(parts))

    def takes(self, *, more: bool) -> None:
        """Be writable, or not."""
        self.outbound.writable = more
        if more:
            self.outbound.tell_listeners()


def attached(entries: PendingEntries) -> Cnx:
    cnx = Cnx()
    entries.attach(cast("ClientCnx", cnx))
    return cnx


def entry(text: bytes, message: PendingMessage | None = None) -> PendingEntry:
    return PendingEntry(0, (text, b"."), (message or pending(),), len(text))


async def test_entries_added_before_the_connection_are_written_first() -> None:
    entries = PendingEntries()
    entries.add(entry(b"0"))
    cnx = attached(entries)
    entries.add(entry(b"1"))
    assert cnx.written == [b"0.", b"1."]


async def test_a_later_entry_does_not_overtake_an_unwritten_entry() -> None:
    entries = PendingEntries()
    cnx = attached(entries)
    cnx.takes(more=False)
    entries.add(entry(b"0"))
    cnx.outbound.writable = True
    entries.add(entry(b"1"))
    assert cnx.written == []
    cnx.takes(more=True)
    assert cnx.written == [b"0.", b"1."]


async def test_nothing_is_written_without_a_connection_and_every_entry_on_the_next() -> None:
    entries = PendingEntries()
    first = attached(entries)
    entries.add(entry(b"0"))
    first.takes(more=False)
    entries.add(entry(b"1"))
    entries.detach()
    first.takes(more=True)
    assert first.written == [b"0."]
    assert attached(entries).written == [b"0.", b"1."]


@pytest.mark.parametrize("is_last", [False, True])
async def test_chunks_at_either_end_are_dropped_without_a_scan_of_all_entries(
    is_last: bool,
) -> None:
    class Blind(deque[PendingEntry]):
        def __iter__(self) -> Iterator[PendingEntry]:
            pytest.fail("looks at all of them")

    entries = PendingEntries()
    entries._entries = Blind()
    in_parts = pending()
    for message in (pending(), in_parts, in_parts) if is_last else (in_parts, in_parts, pending()):
        entries.add(entry(b"", message))
    assert entries.drop_parts_of(in_parts) == 2
    assert len(entries) == 1


async def test_entries_of_a_failed_message_are_not_written() -> None:
    entries = PendingEntries()
    cnx = attached(entries)
    cnx.takes(more=False)
    in_parts = pending()
    for text, message in ((b"0", None), (b"1", in_parts), (b"2", None), (b"3", in_parts)):
        entries.add(entry(text, message))
    entries.pop_first()
    assert entries.drop_parts_of(in_parts) == 2
    cnx.takes(more=True)
    assert cnx.written == [b"2."]
    assert len(entries) == 1
