"""The messages of a subscription that are not due yet."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from broker.subscriptions.position_set import PositionSet

if TYPE_CHECKING:
    from broker.messages.position import Position

FIXED_DELAY_LOOK_AHEAD = 50_000
"""As many messages that all have the same delay are looked at; those behind them are due later."""
_INDEX_BYTES = 176
"""Memory of one message in the index: a place in the queue, a tuple, and three numbers."""
_MOST_AT_ONCE = 5_000


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
        # Each (due, position); those whose position is not waiting any more are passed over.
        self._queue: list[tuple[int, Position]] = []
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
            heapq.heappush(self._queue, (deliver_at_ms, position))
            if deliver_at_ms < self._last_due - self.tick_ms:
                self._fixed_delay = False
            self._last_due = max(self._last_due, deliver_at_ms)
        return True

    def take_due(self, now_ms: int, most: int = _MOST_AT_ONCE) -> list[Position]:
        """Take out the messages that may go out now, in (ledger, entry) order.

        ``most`` at most, those that are due first; while there are more, ``next_due`` says 0.
        """
        horizon = self._horizon(now_ms)
        due: list[Position] = []
        while self._queue and self._queue[0][0] <= horizon and len(due) < most:
            position = heapq.heappop(self._queue)[1]
            if self._waiting.discard(position):
                due.append(position)
        self._more_due = bool(self._queue) and self._queue[0][0] <= horizon
        self._start_again_if_empty()
        due.sort()
        return due

    def next_due(self, now_ms: int) -> int | None:
        """Return in how many ms the timer should fire; None if nothing waits."""
        while self._queue and self._queue[0][1] not in self._waiting:
            heapq.heappop(self._queue)
        if not self._queue:
            return None
        due = self._queue[0][0]
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
            and self._queue[0][0] > self._horizon(now_ms)
        )

    def discard(self, position: Position) -> bool:
        """Forget a message: it was acknowledged or expired; False if it did not wait."""
        return self._waiting.discard(position)

    def discard_through(self, position: Position) -> None:
        """Forget the messages up to and including a position."""
        self._waiting.discard_through(position)
        self._start_again_if_empty()

    def clear(self) -> None:
        """Forget all."""
        self._waiting.clear()
        self._start_again_if_empty()

    def _horizon(self, now_ms: int) -> int:
        return now_ms if self.strict else now_ms + self.tick_ms

    def _start_again_if_empty(self) -> None:
        if not self._waiting:
            self._queue.clear()
            self._last_due = 0
            self._fixed_delay = True
            self._more_due = False
