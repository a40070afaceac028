"""The course of a run: which client starts when, and when all of it ends.

Without sockets, like the clients: real runs and those in virtual time have the same.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from loadgen.clients.schedule import ON_TIME_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limiter.clock import TimerHandle
    from loadgen.clients.context import ClientContext
    from loadgen.scenarios.discovery.driver.family_client import FamilyClient
    from loadgen.scenarios.discovery.scenario import DiscoveryScenario


class Course:
    """Starts the clients of one task, and ends them.

    Without a hold it ends when all of the task's clients are back or have given up, at the latest
    when the time to measure is over. With a hold it ends when both times are over: nothing but the
    scenario says when, so that every task goes on for as long. Then requests under way may end.

    Args:
        scenario: Its phases.
        context: The task's.
        on_over: Called once, when nothing is to be expected any more.

    Attributes:
        start_error_seconds: How late a moment's first client was started, at worst.
    """

    def __init__(
        self,
        scenario: DiscoveryScenario,
        context: ClientContext[Any],
        on_over: Callable[[], None],
    ) -> None:
        self._phases = scenario.phases
        self._context = context
        self._on_over = on_over
        self._clients: Sequence[FamilyClient] = ()
        self._turns: defaultdict[str, deque[FamilyClient]] = defaultdict(deque)
        self._unsettled = self._busy = 0
        self._end: TimerHandle | None = None
        self._over = False
        self.start_error_seconds = 0.0

    def start(self, clients: Sequence[FamilyClient]) -> None:
        """Begin with all clients, each at its moment; T0 may be in the future."""
        self._clients = clients
        self._unsettled = len(clients)
        for client in clients:
            if client.plan.start_seconds is None:
                self._turns[client.plan.group.name].append(client)
        timed = [each for each in clients if each.plan.start_seconds is not None]
        timed.sort(key=_moment, reverse=True)
        phases = self._phases
        self._enter("warm-up" if phases.warm_up_seconds else "measure")
        if phases.warm_up_seconds:
            self._at(phases.warm_up_seconds, self._enter, "measure")
        if phases.hold_seconds:
            self._at(phases.end_seconds - phases.hold_seconds, self._enter, "hold")
        self._end = self._at(phases.end_seconds, self.stop)
        if clients:
            self._start_due(timed)
        else:
            self.stop()

    def settled(self, client: FamilyClient) -> None:
        """Take note that a client is back, or has given up."""
        if client.plan.group.arrivals.kind == "concurrency":
            client.end()  # it makes room
            turn = self._turns[client.plan.group.name]
            if turn:
                # Not from within the one that has just ended: thousands may follow each other.
                clock = self._context.clock
                clock.call_at(clock.now(), self._begin_next, turn)
        self._unsettled -= 1
        if self._unsettled == 0 and not self._phases.hold_seconds:
            self._end_no_more()
            self._end = self._at(self._phases.warm_up_seconds, self.stop)

    def _enter(self, phase: str) -> None:
        """Tell whoever watches the run which phase it is in."""
        if not self._over:
            self._context.counters.phase = phase

    def _begin_next(self, turn: deque[FamilyClient]) -> None:
        if turn and not self._over:
            turn.popleft().begin()

    def _start_due(self, waiting: list[FamilyClient]) -> None:
        """Start those whose moment has come; ``waiting`` ends with the next one."""
        clock, time = self._context.clock, self._context.time
        while waiting and not self._over:
            moment = _moment(waiting[-1])
            late_seconds = time.seconds() - moment
            if late_seconds < -ON_TIME_SECONDS:
                clock.call_at(clock.now() - late_seconds, self._start_due, waiting)
                return
            self.start_error_seconds = max(self.start_error_seconds, late_seconds)
            self._context.lags.append(late_seconds)
            while waiting and _moment(waiting[-1]) == moment:
                waiting.pop().begin()

    def _at(self, moment: float, callback: Callable[..., object], *args: object) -> TimerHandle:
        """Call back at a moment relative to T0, or soon if that has passed."""
        clock = self._context.clock
        wait_seconds = max(0.0, moment - self._context.time.seconds())
        return clock.call_at(clock.now() + wait_seconds, callback, *args)

    def stop(self) -> None:
        """Ask for nothing more, and be over when requests under way have ended or took too long."""
        if self._over:
            return
        self._enter("drain")
        self._over = True
        self._end_no_more()
        clock = self._context.clock
        self._end = clock.call_at(clock.now() + self._phases.drain_seconds, self._drained)
        self._busy = len(self._clients)
        for client in self._clients:
            client.stop(self._idle)
        if not self._clients:
            self._drained()

    def _idle(self) -> None:
        self._busy -= 1
        if self._busy == 0:
            self._drained()

    def _drained(self) -> None:
        if self._end_no_more():
            self._on_over()

    def _end_no_more(self) -> bool:
        """Forget the moment at which the present phase would end; false if there is none."""
        end, self._end = self._end, None
        if end is not None:
            end.cancel()
        return end is not None


def _moment(client: FamilyClient) -> float:
    return client.plan.start_seconds or 0.0
