"""Callbacks that run when memory usage rises to a threshold."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING

from limiter.clock import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock

logger = logging.getLogger(__name__)


class MemoryTrigger:
    """A callback for a threshold of usage; see MemoryLimitController.register_trigger."""

    __slots__ = ("_triggers", "callback", "repeat_seconds", "running", "threshold_bytes", "timer")

    def __init__(
        self,
        triggers: MemoryTriggers,
        callback: Callable[[], object],
        threshold_bytes: int,
        repeat_seconds: float | None,
        clock: Clock,
    ) -> None:
        self._triggers = triggers
        self.callback = callback
        self.threshold_bytes = threshold_bytes
        self.repeat_seconds = repeat_seconds
        self.running = False
        self.timer = Timer(clock)

    def remove(self) -> None:
        """Unregister the callback; idempotent."""
        self._triggers.remove(self)


class MemoryTriggers:
    """The callbacks registered with a MemoryLimitController.

    Bound: one for each registration that was not removed (a client registers one). A callback runs
    in the event-loop iteration of the reservation that crossed its threshold, after the reservation
    is counted; its errors are logged and counted, never raised to the reserving caller.

    Attributes:
        lowest_bytes: The lowest threshold; infinite without triggers.
    """

    def __init__(self, limit_bytes: int, clock: Clock, usage: Callable[[], int]) -> None:
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._usage = usage
        self._triggers: dict[MemoryTrigger, None] = {}
        self.fired_total = 0
        self.failed_total = 0
        self.lowest_bytes = math.inf

    def _thresholds_changed(self) -> None:
        limited = self._limit_bytes > 0
        thresholds = [one.threshold_bytes for one in self._triggers] if limited else []
        self.lowest_bytes = min(thresholds, default=math.inf)

    def __len__(self) -> int:
        return len(self._triggers)

    def register(
        self, callback: Callable[[], object], threshold: float, repeat_seconds: float | None
    ) -> MemoryTrigger:
        """Add a trigger; see MemoryLimitController.register_trigger."""
        if not threshold > 0:
            raise ValueError(f"A threshold is a fraction above 0, not {threshold}")
        if repeat_seconds is not None and not repeat_seconds > 0:
            raise ValueError(f"A trigger repeats after more than 0 seconds, not {repeat_seconds}")
        # At least one byte: usage never crosses a threshold of 0.
        threshold_bytes = max(1, int(self._limit_bytes * threshold))
        trigger = MemoryTrigger(self, callback, threshold_bytes, repeat_seconds, self._clock)
        self._triggers[trigger] = None
        self._thresholds_changed()
        return trigger

    def remove(self, trigger: MemoryTrigger) -> None:
        """Remove a trigger; idempotent."""
        self._triggers.pop(trigger, None)
        self._thresholds_changed()
        trigger.timer.stop()

    def clear(self) -> None:
        """Remove all triggers."""
        for trigger in list(self._triggers):
            self.remove(trigger)

    def usage_rose(self, before: int, after: int) -> None:
        """Run the callbacks of all thresholds that usage has crossed from below."""
        if after < self.lowest_bytes:
            return
        crossed = [one for one in self._triggers if before < one.threshold_bytes <= after]
        for trigger in crossed:
            self._run(trigger)

    def _run(self, trigger: MemoryTrigger) -> None:
        """Run a callback, unless it is running or an earlier callback removed it."""
        if trigger.running or trigger not in self._triggers:
            return
        self.fired_total += 1
        trigger.running = True
        try:
            trigger.callback()
        except (Exception, asyncio.CancelledError):
            # The reserving caller holds its memory whatever a callback does, and must not see the
            # error.
            self.failed_total += 1
            logger.exception("A memory trigger failed")
        finally:
            trigger.running = False
        if trigger.repeat_seconds is not None and trigger in self._triggers:
            trigger.timer.after(trigger.repeat_seconds, self._repeat, trigger)

    def _repeat(self, trigger: MemoryTrigger) -> None:
        """Run a callback again if usage is still at its threshold or above."""
        if self._usage() >= trigger.threshold_bytes:
            self._run(trigger)
