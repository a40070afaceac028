"""Records that are written to the log at once, and those who wait for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.messages.managed_ledger import MessageStoreError
    from broker.messages.position import Position
    from broker.messages.stores.log.records import ItemKey
    from broker.messages.stores.log.segments import Segment


class Writing(Protocol):
    """A topic that waits for its entries to be stored."""

    def stored(self, last: Position) -> None:
        """Everything up to here is stored."""

    def not_stored(self, error: MessageStoreError) -> None:
        """Give up what is not stored yet: it will not be."""


class Chunk:
    """Records that are written with one call.

    Attributes:
        segment: Where they go.
        start: The offset of the first.
        parts: Their bytes.
        size: How many those are.
        waiting: The topics with entries among them, and the last entry of each.
        keys: The items with states among them.
        settled: Called when all is stored, with None, or has failed.
    """

    __slots__ = ("keys", "parts", "segment", "settled", "size", "start", "waiting")

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.start = segment.size
        self.parts: list[bytes] = []
        self.size = 0
        self.waiting: dict[Writing, Position] = {}
        self.keys: list[ItemKey] = []
        self.settled: list[Callable[[MessageStoreError | None], None]] = []
        segment.unsettled += 1
