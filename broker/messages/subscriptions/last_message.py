"""The last message of a topic, as requested by readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.metadata import parse_metadata
from broker.messages.position import EARLIEST

if TYPE_CHECKING:
    from broker.messages.entry import Entry
    from broker.messages.position import Position


def last_message(last: Entry | None) -> tuple[Position, int]:
    """Return a topic's last entry and last batch index; (-1, -1) and -1 without messages.

    Also for an acknowledged message. The index is -1 for a message without a batch, and for a batch
    claiming no messages (recorded); for a compacted batch the index of the last remaining message.

    Raises:
        RemoteProtocolError: The metadata cannot be read.
    """
    if last is None:
        return EARLIEST, -1
    metadata = parse_metadata(last.data)
    if not metadata.HasField("num_messages_in_batch"):
        return last.position, -1
    if metadata.compacted_batch_indexes:
        return last.position, metadata.compacted_batch_indexes[-1]
    return last.position, max(0, metadata.num_messages_in_batch) - 1
