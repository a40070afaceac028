"""The messages that a subscription delivers only after a requested time."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from broker.messages.position import Position
from broker.messages.subscriptions.position_set import PositionSet

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXED_DELAY_LOOK_AHEAD = 50_000
"""The number of messages with the same delay after which reading ahead pauses: later messages are
due later."""
_INDEX_BYTES = 60
"""The bytes of memory of one message in the index: a queue entry, a number, and a bit."""
MOST_AT_ONCE = 1_000
"""The largest number of messages, including forgotten ones, removed from the queue in one
event-loop turn."""
_FREED_AT_ONCE = 20_000
_BITS = 64
_LOW = (1 << _BITS) - 1


class DelayedMessages:
    """The delayed messages of a subscription, ordered by delivery time.

    The caller has the clock and the timer; all times are in ms since 1970. The timer fires once per
    tick and delivers messages up to a tick before their time or, if ``strict``, up to a tick after
    it.

    Args:
        tick_ms: The length of a tick; values below 1 count as 1 (a policy may have 0 or less).
        strict: True to deliver no message before its time.

    Source: upstream InMemoryDelayedDeliveryTracker.
    """

    def __init__(self, tick_ms: int = 1_000, *, strict: bool = False) -> None:
        self.change_tick(tick_ms)
        self.strict = strict
        # Due time, ledger and entry in one number, ignored by the garbage collector; forgotten
        # positions are skipped.
        self._queue: list[int] = []
        self._waiting = PositionSet()
        self._last_due = 0
        self._fixed_delay = True
        self._more_due = False

    def change_tick(self, tick_ms: int) -> None:
        """Change the tick, the interval in ms at which due messages are delivered."""
        self.tick_ms = max(1, tick_ms)

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, position: object) -> bool:
        return position in self._waiting

    @property
    def size_bytes(self) -> int:
        """The approximate bytes of memory of the index (delayedMessageIndexSizeInBytes)."""
        return len(self._queue) * _INDEX_BYTES

    def add(self, position: Position, deliver_at_ms: int, now_ms: int) -> bool:
        """Add a delayed message; return False if it may be delivered now.

        Such a message shows that not all messages have the same delay.
        """
        if deliver_at_ms <= self._horizon(now_ms):
            self._fixed_delay = not self._waiting
            return False
        if self._waiting.add(position):
            ledger_id, entry_id = position
            place = ledger_id << _BITS | entry_id
            heapq.heappush(self._queue, deliver_at_ms << 2 * _BITS | place)
            if deliver_at_ms < self._last_due - self.tick_ms:
                self._fixed_delay = False
            self._last_due = max(self._last_due, deliver_at_ms)
        return True

    def take_due(self, now_ms: int, most: int = MOST_AT_ONCE) -> list[Position]:
        """Remove and return the messages that may be delivered now, sorted by position.

        If more than ``most`` are due, take the earliest; while more are due, ``next_due`` returns
        0.
        """
        horizon = self._horizon(now_ms)
        due: list[Position] = []
        for _ in range(MOST_AT_ONCE):
            if not self._queue or self._first_due > horizon or len(due) == most:
                break
            position = _position(heapq.heappop(self._queue))
            if self._waiting.discard(position):
                due.append(position)
        self._more_due = bool(self._queue) and self._first_due <= horizon
        self._start_again_if_empty()
        due.sort()
        return due

    def next_due(self, now_ms: int) -> int | None:
        """Return the ms until the timer must fire next; None without messages."""
        if not self._waiting:
            return None
        for _ in range(MOST_AT_ONCE):
            if _position(self._queue[0]) in self._waiting:
                break
            heapq.heappop(self._queue)
        due = self._first_due
        if due <= now_ms or (self._more_due and self.is_due(now_ms)):
            return 0
        return (due // self.tick_ms + 1) * self.tick_ms - now_ms

    def is_due(self, now_ms: int) -> bool:
        """Return True if the earliest message, which may be a forgotten one, is due."""
        return bool(self._queue) and self._first_due <= self._horizon(now_ms)

    def pauses_reading(self, now_ms: int) -> bool:
        """Return True if reading ahead is useless, because further messages are due even later.

        This is so if there are many messages, all have the same delay, and none is due.
        """
        return (
            self._fixed_delay
            and len(self._waiting) >= FIXED_DELAY_LOOK_AHEAD
            and self._first_due > self._horizon(now_ms)
        )

    def discard(self, position: Position) -> bool:
        """Forget an acknowledged or expired message; return False if it is not delayed."""
        return self._waiting.discard(position)

    def discard_through(self, position: Position) -> None:
        """Forget the messages up to and including a position."""
        self._waiting.discard_through(position)
        self._start_again_if_empty()

    def emptied(self) -> Iterator[None]:
        """Remove all messages of an index that is no longer needed, in steps."""
        self._waiting.clear()
        while self._queue:
            del self._queue[-_FREED_AT_ONCE:]
            yield

    @property
    def _first_due(self) -> int:
        return self._queue[0] >> 2 * _BITS

    def _horizon(self, now_ms: int) -> int:
        return now_ms if self.strict else now_ms + self.tick_ms

    def _start_again_if_empty(self) -> None:
        if not self._waiting:
            # The rest of the queue stays ordered.
            del self._queue[-_FREED_AT_ONCE:]
            self._last_due = 0
            self._fixed_delay = True
            self._more_due = False


def _position(number: int) -> Position:
    return Position(number >> _BITS & _LOW, number & _LOW)
