"""An event loop of virtual time, which jumps to the next timer when nothing is ready.

Plain asyncio without a selector or threads: work for an executor runs immediately. Connections
opened by servers lead into a simulated network.
"""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextvars import Context

    Work: TypeAlias = Callable[..., object]
    Ends: TypeAlias = tuple[asyncio.Transport, asyncio.BaseProtocol]
    Dial: TypeAlias = Callable[[Callable[[], asyncio.BaseProtocol], str, int], Awaitable[Ends]]

EPOCH_MS = 1_767_225_600_000
"""The wall clock's reading at the loop's beginning: the same in every run."""
LATE_SECONDS = 1e-9
"""Lateness of timers. Sums of times are inexact: a callback that reads the clock must not find its
moment still ahead.
"""
_FEWEST_PURGED = 1_000
_EVENTS_BETWEEN_LOOKS = 1_000


class StandstillError(Exception):
    """The simulation is deadlocked: no callback is ready and no timer is set."""


class CutError(Exception):
    """The simulation was ended early by its caller, through ``may_go_on``."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An asyncio event loop whose time passes only between callbacks.

    Timers due at the same moment run in the order in which they were armed; callbacks made ready by
    a timer run before the next timer.

    Attributes:
        dial: Opens connections by address; the network's, if there is one.
        events: Number of timers run.

    Args:
        may_go_on: Polled; False ends the loop with :class:`CutError`.
    """

    def __init__(self, may_go_on: Callable[[], bool] = lambda: True) -> None:
        super().__init__()
        self.dial: Dial | None = None
        self.events = 0
        self._may_go_on = may_go_on
        self._now = 0.0
        self._timers: list[tuple[float, int, Any, Any]] = []
        self._sequence = 0
        self._cancelled = 0

    def time(self) -> float:
        """Return the virtual seconds since the loop was created."""
        return self._now

    def look(self) -> None:
        """Raise CutError if the caller wants to end the simulation.

        Raises:
            CutError: ``may_go_on`` returned False.
        """
        if not self._may_go_on():
            self._may_go_on = lambda: True  # the clean-up of a cut simulation still runs
            raise CutError

    def after(self, when: float, callback: Work, *args: object) -> None:
        """Call a function at a moment; cheaper than :meth:`call_at`, but it cannot be cancelled."""
        self._sequence += 1
        heappush(self._timers, (when, self._sequence, callback, args))

    def call_at(
        self, when: float, callback: Work, *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Set a timer; as a real one, it fires slightly late and never early."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._sequence += 1
        heappush(self._timers, (when + LATE_SECONDS, self._sequence, timer, None))
        return timer

    def run_in_executor(
        self, executor: object, func: Callable[..., Any], *args: object
    ) -> asyncio.Future[Any]:
        """Run the function immediately, because the loop has no threads."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - for whoever awaits it
            done.set_exception(error)
        return done

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        **_: object,
    ) -> Ends:
        """Open a connection over the simulated network."""
        if self.dial is None:
            raise OSError("there is no network")
        return await self.dial(protocol_factory, host, port)

    # Called by asyncio itself.

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._cancelled += 1
        if self._cancelled > _FEWEST_PURGED and self._cancelled * 2 > len(self._timers):
            self._timers = [
                one for one in self._timers if one[3] is not None or not one[2].cancelled()
            ]
            heapify(self._timers)
            self._cancelled = 0

    def _run_once(self) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        if not ready:
            self._next_timer()
        while ready:
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
            if self._stopping:  # type: ignore[attr-defined]
                break

    def _next_timer(self) -> None:
        """Advance time to the next timer that is not cancelled, and run it."""
        timers = self._timers
        while timers:
            when, _, callback, args = heappop(timers)
            if args is None and callback.cancelled():
                self._cancelled = max(0, self._cancelled - 1)
                continue
            if when > self._now:
                self._now = when
            self.events += 1
            if not self.events % _EVENTS_BETWEEN_LOOKS:
                self.look()
            if args is None:
                callback._run()
            else:
                callback(*args)
            return
        raise StandstillError(f"nothing is left to happen after {self._now:g} s of virtual time")

    def _write_to_self(self) -> None:
        """Do nothing: there is no other thread that would have to wake the loop."""

    def _process_events(self, event_list: object) -> None:
        """Do nothing: the loop has no sockets."""


class VirtualClock:
    """The clock that simulated servers read, on a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.now = loop.time
        self.call_at = loop.call_at

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, counted as if each run began at the same date."""
        return EPOCH_MS + int(self._loop.time() * 1000)
