"""Event loop with callbacks timed individually, and a manual clock."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from heapq import heappop
from typing import Any

from loadgen.virtual.loop import VirtualLoop
from tests.fuzz.rules import ERRORS, TURNS, BrokenRuleError

MOST_TURNS = 20_000
"""Turns without a pause after which the loop counts as endless."""


class SteppedLoop(VirtualLoop):
    """Stepped loop. Work for a thread runs in an unmeasured turn."""

    def __init__(self) -> None:
        super().__init__()
        self.set_exception_handler(ERRORS.unhandled)

    def abandon(self) -> None:
        """End all tasks of an abandoned loop."""
        with self.running():
            for task in asyncio.all_tasks(self):
                task.cancel()
            self.settle()
        self._timers.clear()

    def __del__(self) -> None:
        """Skip the warning: no selector needs closing."""

    def run_in_executor(
        self, executor: object, func: Callable[..., Any], *args: object
    ) -> asyncio.Future[Any]:
        """Do the work later, as a thread would."""
        del executor
        done = self.create_future()
        self.call_soon(_Unmeasured(func, args, done))
        return done

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be the running loop in a block, for outside callers too."""
        asyncio.events._set_running_loop(self)
        try:
            yield
        finally:
            asyncio.events._set_running_loop(None)

    def settle(self) -> None:
        """Run callbacks until the loop is idle.

        Raises:
            BrokenRuleError: The loop never becomes idle.
        """
        ready = self._ready  # type: ignore[attr-defined]
        turns = 0
        while ready:
            handle = ready.popleft()
            if handle._cancelled:
                continue
            turns += 1
            if turns > MOST_TURNS:
                raise BrokenRuleError("the loop does not come to rest")
            if type(handle._callback) is _Unmeasured:
                handle._run()
                continue
            begun = TURNS.begin()
            handle._run()
            TURNS.end(begun)

    def pass_time(self, seconds: float) -> None:
        """Advance the clock: run due timers, and the callbacks that follow."""
        end = self._now + seconds
        self.settle()
        while (due := self._next_due()) is not None and due <= end:
            begun = TURNS.begin()
            self._next_timer()
            TURNS.end(begun)
            self.settle()
        self._now = max(self._now, end)

    def _next_due(self) -> float | None:
        """Return the next timer's time, dropping cancelled timers."""
        timers = self._timers
        while timers and timers[0][3] is None and timers[0][2].cancelled():
            heappop(timers)
            self._cancelled = max(0, self._cancelled - 1)
        return timers[0][0] if timers else None

    def run(self, work: Coroutine[Any, Any, Any], *, measured: bool = True) -> Any:
        """Run a coroutine to its end, advancing the clock as needed, and return its result."""
        before = TURNS.of_this_input
        with self.running():
            task = self.create_task(work)
            self.settle()
            while not task.done():
                self._next_timer()
                self.settle()
        if not measured:
            TURNS.of_this_input = before
        return task.result()


class _Unmeasured:
    """Work for a thread."""

    def __init__(
        self, func: Callable[..., Any], args: tuple[object, ...], done: asyncio.Future[Any]
    ) -> None:
        self._func, self._args, self._done = func, args, done

    def __call__(self) -> None:
        if self._done.cancelled():
            return
        try:
            result = self._func(*self._args)
        except Exception as error:  # noqa: BLE001 - for whoever awaits it
            self._done.set_exception(error)
        else:
            self._done.set_result(result)
