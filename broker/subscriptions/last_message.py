"""The last message of a topic, as readers ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.metadata import parse_metadata
from broker.messages.position import EARLIEST, Position

if TYPE_CHECKING:
    from broker.messages.managed_ledger import ManagedLedger


def last_message(ledger: ManagedLedger) -> tuple[Position, int]:
    """Return the last entry and the index of its last message; (-1, -1) and -1 without any.

    It is named also if it is acknowledged. The index is -1 for a message without a batch, and for a
    batch that says it has none (recorded).

    Raises:
        RemoteProtocolError: Its metadata cannot be read.
    """
    last = ledger.last_confirmed
    entry = ledger.entry(last) if last.entry_id >= 0 else None
    if entry is None:
        return EARLIEST, -1
    metadata = parse_metadata(entry.data)
    if not metadata.HasField("num_messages_in_batch"):
        return last, -1
    return last, max(0, metadata.num_messages_in_batch) - 1
