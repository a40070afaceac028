"""The parts of an open log, as the ledgers of topics use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.messages.stores.log.cleaner import Cleaner
    from broker.messages.stores.log.items import Items
    from broker.messages.stores.log.reader import LogReader
    from broker.messages.stores.log.segments import Segments
    from broker.messages.stores.log.writer import LogWriter


@dataclass(frozen=True, slots=True)
class LogParts:
    """The parts of an open log.

    Attributes:
        segments: Its files.
        writer: Writes to the last of them.
        reader: Reads entries.
        items: Topics, cursors and properties.
        cleaner: Deletes files.
        next_id: Gives ids.
        now_ms: The time in ms since 1970.
        max_entries_per_ledger: A ledger with so many is closed.
    """

    segments: Segments
    writer: LogWriter
    reader: LogReader
    items: Items
    cleaner: Cleaner
    next_id: Callable[[], int]
    now_ms: Callable[[], int]
    max_entries_per_ledger: int
