"""The messages of a subscription that are not due yet."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from broker.messages.position import Position
from broker.subscriptions.position_set import PositionSet

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXED_DELAY_LOOK_AHEAD = 50_000
"""As many messages that all have the same delay are looked at; those behind them are due later."""
_INDEX_BYTES = 60
"""Memory of one message in the index: a place in the queue, a number, and a bit."""
MOST_AT_ONCE = 1_000
"""Messages that are taken out of the queue in one turn, those that nobody waits for included."""
_FREED_AT_ONCE = 20_000
_BITS = 64
_LOW = (1 << _BITS) - 1


class DelayedMessages:
    """An index of messages by the moment from which they may be delivered.

    Its caller has the clock and the timer: all moments are in ms since 1970. The timer is that of a
    wheel that turns once each tick, and a message goes out at a turn, so up to a tick early (late
    if ``strict``).

    Args:
        tick_ms: From turn to turn; less than 1 is 1 (a policy may say 0, or less, or not say it).
        strict: Never early.

    Source: upstream InMemoryDelayedDeliveryTracker.
    """

    def __init__(self, tick_ms: int = 1_000, *, strict: bool = False) -> None:
        self.change_tick(tick_ms)
        self.strict = strict
        # Due, ledger and entry in one number, which the garbage collector passes over; those whose
        # position is not waiting any more are passed over, too.
        self._queue: list[int] = []
        self._waiting = PositionSet()
        self._last_due = 0
        self._fixed_delay = True
        self._more_due = False

    def change_tick(self, tick_ms: int) -> None:
        """Turn at another pace from now on; see DelayedMessages."""
        self.tick_ms = max(1, tick_ms)

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, position: object) -> bool:
        return position in self._waiting

    @property
    def size_bytes(self) -> int:
        """About the memory of the index (delayedMessageIndexSizeInBytes)."""
        return len(self._queue) * _INDEX_BYTES

    def add(self, position: Position, deliver_at_ms: int, now_ms: int) -> bool:
        """Keep a message back; False if it is due and may go out at once."""
        if deliver_at_ms <= self._horizon(now_ms):
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
        """Take out the messages that may go out now, in (ledger, entry) order.

        ``most`` at most, those that are due first; while there are more, ``next_due`` says 0.
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
        """Return in how many ms the timer should fire; None if nothing waits."""
        if not self._waiting:
            return None
        for _ in range(MOST_AT_ONCE):
            if _position(self._queue[0]) in self._waiting:
                break
            heapq.heappop(self._queue)
        due = self._first_due
        if self._more_due or due <= now_ms:
            return 0
        return (due // self.tick_ms + 1) * self.tick_ms - now_ms

    def pauses_reading(self, now_ms: int) -> bool:
        """Tell whether no more needs to be read: so many wait, all with one delay, and none is due.

        What would be read next is due later than all of them.
        """
        return (
            self._fixed_delay
            and len(self._waiting) >= FIXED_DELAY_LOOK_AHEAD
            and self._first_due > self._horizon(now_ms)
        )

    def discard(self, position: Position) -> bool:
        """Forget a message: it was acknowledged or expired; False if it did not wait."""
        return self._waiting.discard(position)

    def discard_through(self, position: Position) -> None:
        """Forget the messages up to and including a position."""
        self._waiting.discard_through(position)
        self._start_again_if_empty()

    def emptied(self) -> Iterator[None]:
        """Take out all that there is, some in each step: nobody needs it any more."""
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
            # What is left of the queue is in order, too.
            del self._queue[-_FREED_AT_ONCE:]
            self._last_due = 0
            self._fixed_delay = True
            self._more_due = False


def _position(number: int) -> Position:
    return Position(number >> _BITS & _LOW, number & _LOW)
