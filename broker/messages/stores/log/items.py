"""The small states beside entries: topics, cursors, properties. Each has one that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.stores.log.records import CURSOR, OFFSET_BITS, PROPERTY, item_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.messages.stores.log.records import ItemKey
    from broker.messages.stores.log.segments import Segments
    from broker.messages.stores.log.writer import LogWriter
    from limiter.clock import Clock, TimerHandle

RETRY_SECONDS = 1.0
"""What could not be written is written again so much later."""


class Items:
    """The places of the current state of every item.

    Args:
        segments: Counts what lives where.
        writer: Writes the log.
        value_of: The state of an item as it is now; None if it is deleted.
        clock: For the next try when a write failed.
    """

    def __init__(
        self,
        segments: Segments,
        writer: LogWriter,
        value_of: Callable[[ItemKey], bytes | None],
        clock: Clock,
    ) -> None:
        self._segments = segments
        self._writer = writer
        self._value_of = value_of
        self._clock = clock
        self._places: dict[ItemKey, int] = {}
        self._unsaved: dict[ItemKey, None] = {}
        self._retry: TimerHandle | None = None

    def found(self, key: ItemKey, segment: int, size: int) -> None:
        """Take over a state that was found in the log."""
        self._places[key] = segment
        self._segments.item_saved(key, segment, size)

    def save(self, key: ItemKey) -> None:
        """Write an item's state as it is now.

        Raises:
            MessageStoreError: Nothing more can be written.
        """
        record = item_record(key, self._value_of(key))
        segment = self._writer.add_item(key, record) >> OFFSET_BITS
        self.forget(key)
        self._places[key] = segment
        self._segments.item_saved(key, segment, len(record))

    def forget(self, key: ItemKey) -> None:
        """Count an item's state as no longer needed."""
        segment = self._places.pop(key, None)
        if segment is not None:
            self._segments.item_gone(key, segment)

    def is_needed(self, key: ItemKey, segment: int) -> bool:
        """Tell whether an item's state must be kept when its segment goes.

        A deletion must be as long as another segment has a state that would come back.
        """
        if self._value_of(key) is not None:
            return True
        if key.kind in (CURSOR, PROPERTY) and self._topic_is_gone(key):
            return False
        return any(key in one.keys for one in self._segments if one.number != segment)

    def _topic_is_gone(self, key: ItemKey) -> bool:
        return self._value_of(key.of_topic) is None

    def unsaved(self, keys: Iterable[ItemKey]) -> None:
        """Write states again in a second: a write of them has failed."""
        for key in keys:
            self.forget(key)
            self._unsaved[key] = None
        if self._unsaved and self._retry is None:
            self._retry = self._clock.call_at(self._clock.now() + RETRY_SECONDS, self._save_again)

    def _save_again(self) -> None:
        self._retry = None
        keys, self._unsaved = self._unsaved, {}
        for key in keys:
            try:
                self.save(key)
            except MessageStoreError:
                return

    def close(self) -> None:
        """Try no more."""
        if self._retry is not None:
            self._retry.cancel()
