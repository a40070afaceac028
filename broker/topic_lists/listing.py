"""A listing: an answer's topics, exchanged by listers, filters and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.topic_lists.block import Totals
from proto.topic_hash import EMPTY_HASH, format_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.topic_lists.sequence import TopicSequence


class TopicListing:
    """The topics of an answer: consecutive sequences, in Java's order.

    Listings of the same version and mode are the same object, so that requests can share derived
    values.

    Attributes:
        estimated_bytes: Heap estimate: UTF-8 bytes + 32 a name (upstream: estimateTopicListSize).
        hash: Pulsar's topics hash.
    """

    __slots__ = ("__weakref__", "estimated_bytes", "hash", "sequences", "totals")

    def __init__(self, *sequences: TopicSequence) -> None:
        self.sequences = sequences
        self.totals = Totals.of_all(sequence.totals for sequence in sequences)
        self.estimated_bytes = self.totals.estimated_bytes
        self.hash = format_hash(self.totals.crc) if self.totals.count else EMPTY_HASH

    def __len__(self) -> int:
        return self.totals.count

    def __repr__(self) -> str:
        return f"<TopicListing {self.totals.count} names, {self.totals.wire_bytes} bytes>"

    def wire_parts(self) -> list[bytes]:
        """Return the names in wire format, block by block."""
        return [part for sequence in self.sequences for part in sequence.wire_parts]

    def names(self) -> Iterator[str]:
        """Yield the names as text, in Java's order."""
        return (name.decode() for sequence in self.sequences for name in sequence.names())


EMPTY_LISTING = TopicListing()
