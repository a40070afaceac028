"""Reads entries from the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.stores.log.records import (
    ENTRY_DATA_OFFSET,
    HEADER_BYTES,
    OFFSET_BITS,
    OFFSET_MASK,
    body_at,
)

if TYPE_CHECKING:
    from broker.messages.stores.log.log_ledger import LogLedger
    from broker.messages.stores.log.segments import Segments
    from broker.messages.stores.log.tail import LogTail

MOST_BYTES = 1024 * 1024
"""One read of a file has no more, unless an entry has."""
SMALL_GAP_BYTES = 4 * 1024
"""Records of others between two of ours that are read with them."""

_BODY_DATA_OFFSET = ENTRY_DATA_OFFSET - HEADER_BYTES


class LogReader:
    """Reads entries from the log's end in memory, or from its files.

    What comes from a file is checked against its checksum.
    """

    def __init__(self, segments: Segments, tail: LogTail) -> None:
        self._segments = segments
        self._tail = tail

    def read(self, ledger: LogLedger, first: int, end: int) -> list[bytes]:
        """Return the bytes of consecutive entries.

        Raises:
            MessageStoreError: They cannot be read.
        """
        found: list[bytes] = []
        while first < end:
            stop, size = self._run(ledger, first, end)
            base = ledger.places[first]
            raw = self._tail.read(base, size)
            if raw is not None:
                for number in range(first, stop):
                    start = ledger.places[number] - base + ENTRY_DATA_OFFSET
                    found.append(raw[start : start + ledger.size(number)])
            else:
                raw = self._from_file(base, size)
                for number in range(first, stop):
                    body = body_at(raw, ledger.places[number] - base)
                    if body is None:
                        raise _unreadable(base, f"entry {ledger.ledger_id}:{number} is damaged")
                    found.append(body[_BODY_DATA_OFFSET:])
            first = stop
        return found

    def _run(self, ledger: LogLedger, first: int, end: int) -> tuple[int, int]:
        """Return the end of the entries that are read together, and how many bytes that takes."""
        places = ledger.places
        base = places[first]
        size = ENTRY_DATA_OFFSET + ledger.size(first)
        number = first + 1
        while number < end:
            start = places[number] - base
            behind = start + ENTRY_DATA_OFFSET + ledger.size(number)
            # In another segment the distance is beyond all bounds.
            if not size <= start <= size + SMALL_GAP_BYTES or behind > MOST_BYTES:
                break
            size = behind
            number += 1
        return number, size

    def _from_file(self, place: int, size: int) -> bytes:
        file = self._segments[place >> OFFSET_BITS].file
        if file is None:
            raise _unreadable(place, "it was never written")
        try:
            return file.pread(size, place & OFFSET_MASK)
        except OSError as error:
            raise _unreadable(place, error.strerror or str(error)) from None


def _unreadable(place: int, reason: str) -> MessageStoreError:
    return MessageStoreError(
        f"segment {place >> OFFSET_BITS} of the message log cannot be read: {reason}"
    )
