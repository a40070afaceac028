"""Measurement of a task: its event loop's lag, processor time and open files."""

from __future__ import annotations

import math
import os
import time
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from loadgen.engine.totals import nearest_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.clock import Clock, TimerHandle
    from loadgen.engine.context import RunTime

PROBE_SECONDS = 0.05
_OPEN_FILES = "/proc/self/fd"


class TaskWatch:
    """Measures a task's event-loop lag, processor time and open files.

    Mutable state: the measurements since the run's start.

    Bound: twenty measurements for each second of the run.
    """

    def __init__(self, clock: Clock, run_time: RunTime) -> None:
        self._clock = clock
        self._time = run_time
        self._loop_lags = array("d")
        self._begun_cpu_seconds = 0.0
        self._begun_seconds = 0.0
        self._descriptors = 0
        self._probing: TimerHandle | None = None
        self._due_seconds = math.inf

    def begin(self) -> None:
        """Begin measuring at the run's start, or now if the start has passed."""
        self._descriptors = _open_descriptors()
        self._due_seconds = max(0.0, self._time.seconds())
        self._arm()

    def end(self, lags: Sequence[float]) -> dict[str, Any]:
        """Stop measuring, and return the task's measurements.

        ``lags`` are the delays of scheduled requests, in seconds.
        """
        if self._probing is not None:
            self._probing.cancel()
        now_seconds = self._time.seconds()
        measured = now_seconds - self._begun_seconds if self._loop_lags else 0.0
        cpu_seconds = time.process_time() - self._begun_cpu_seconds if self._loop_lags else 0.0
        # The loop may have been blocked until now.
        while self._due_seconds < now_seconds:
            self._note(now_seconds)
        return {
            "moments": len(lags),
            "lag_p99_seconds": _p99(lags),
            "loop_lag_p99_seconds": _p99(self._loop_lags),
            "loop_lag_max_seconds": max(self._loop_lags, default=0.0),
            "cpu_seconds": cpu_seconds,
            "measured_seconds": measured,
            "descriptors": max(self._descriptors, _open_descriptors()),
        }

    def _arm(self) -> None:
        wait_seconds = max(0.0, self._due_seconds - self._time.seconds())
        self._probing = self._clock.call_at(self._clock.now() + wait_seconds, self._probe)

    def _probe(self) -> None:
        now_seconds = self._time.seconds()
        if not self._loop_lags:
            self._begun_cpu_seconds = time.process_time()
            self._begun_seconds = now_seconds
        self._note(now_seconds)
        self._arm()

    def _note(self, now_seconds: float) -> None:
        """Record the delay of a probe of the event loop.

        The schedule of later probes stays the same.
        """
        self._loop_lags.append(max(0.0, now_seconds - self._due_seconds))
        self._due_seconds += PROBE_SECONDS


def _p99(values: Sequence[float]) -> float:
    return nearest_rank(sorted(values), 0.99) if values else 0.0


def _open_descriptors() -> int:
    """Return the number of this process's open files; 0 if the system does not provide it."""
    with suppress(OSError):
        return len(os.listdir(_OPEN_FILES))
    return 0
