"""Entries with deadlines, rounded to steps: one timer for all entries."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client.messages.message_id import Place
    from limiter.clock import Clock, TimerHandle

MOST_ENTRIES = 100_000
"""Maximum number of pending entries; beyond the limit the oldest falls due immediately."""

MOST_AT_ONCE = 1_000
"""Maximum number of entries reported in one event-loop iteration."""


class DueTimes:
    """Pending entries, each with the time step of its deadline.

    Args:
        clock: The source of time.
        step_seconds: Width of a step; entries of one step are reported together.
        on_due: Called with due entries, already removed.
    """

    def __init__(
        self, clock: Clock, step_seconds: float, on_due: Callable[[list[Place]], object]
    ) -> None:
        self._clock = clock
        self._step_seconds = step_seconds
        self._on_due = on_due
        self._step_of: dict[Place, int] = {}
        self._steps: dict[int, dict[Place, None]] = {}
        self._order: list[int] = []
        self._timer: TimerHandle | None = None
        self._timer_step = -1

    def __len__(self) -> int:
        return len(self._step_of)

    def __contains__(self, entry: Place) -> bool:
        return entry in self._step_of

    def __iter__(self) -> Iterator[Place]:
        """Iterate over the pending entries, oldest first."""
        return iter(self._step_of)

    def add(self, entry: Place, delay_seconds: float) -> None:
        """Schedule an entry; an entry already pending keeps its deadline."""
        if entry in self._step_of:
            return
        step = int((self._clock.now() + delay_seconds) / self._step_seconds) + 1
        if len(self._step_of) >= MOST_ENTRIES:
            oldest = next(iter(self._step_of))
            self.remove(oldest)
            self._on_due([oldest])
        self._step_of[entry] = step
        if (entries := self._steps.get(step)) is None:
            entries = self._steps[step] = {}
            heappush(self._order, step)
            self._arm()
        entries[entry] = None

    def remove(self, entry: Place) -> bool:
        """Remove an entry; return false if absent."""
        step = self._step_of.pop(entry, None)
        if step is None:
            return False
        del self._steps[step][entry]
        return True

    def clear(self) -> None:
        """Remove all entries."""
        self._step_of.clear()
        self._steps.clear()
        self._order.clear()
        self._arm()

    def _arm(self) -> None:
        step = self._order[0] if self._order else -1
        if step == self._timer_step and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_step = step
        if self._order:
            self._timer = self._clock.call_at(step * self._step_seconds, self._fell_due)

    def _fell_due(self) -> None:
        self._timer = None
        step = self._timer_step
        due: list[Place] = []
        while self._order and self._order[0] <= step and len(due) < MOST_AT_ONCE:
            entries = self._steps[self._order[0]]
            some = list(islice(entries, MOST_AT_ONCE - len(due)))
            due += some
            for entry in some:
                del entries[entry]
                del self._step_of[entry]
            if not entries:
                del self._steps[heappop(self._order)]
        self._arm()  # Due entries left over follow in the next event-loop iteration.
        if due:
            self._on_due(due)
