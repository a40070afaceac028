"""Client memory is always the sum of held bytes, and callers keep their order."""

import asyncio
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from limiter.client_memory.errors import (
    MemoryReserveClosedError,
    MemoryReserveQueueFullError,
    MemoryReserveTimeoutError,
)
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from limiter.client_memory.reservation import Reservation, ReserveOutcome
from tests.support.clocks.manual_clock import ManualClock
from tests.support.examples import many

LIMIT = 6
CROSSING = 3
MAX_WAITERS = 4
# Mostly small: a release then satisfies several waiters.
SIZES = st.integers(0, 2) | st.integers(0, 2 * LIMIT)
TIMEOUTS = st.sampled_from([None, None, 5.0, 25.0])
PICKS = st.integers(0, 1_000)


class Caller:
    """A task requesting memory, and the model's facts about it."""

    def __init__(self, size: int, due: float | None) -> None:
        self.size = size
        self.due = due
        self.task: asyncio.Task[Reservation] | None = None
        self.leaving = False
        self.granted = False
        self.error: type[Exception] | None = None


class Model:
    """The rules in their plainest form, without waiting or waking."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.usage = self.high_water = self.crossings = self.overflows = 0
        self.closed = False
        self.waiting: list[Caller] = []
        self.answered: list[Caller] = []
        self.outcomes: Counter[ReserveOutcome] = Counter()

    def admits(self) -> bool:
        return self.limit <= 0 or self.usage <= self.limit

    def book(self, size: int) -> None:
        before, self.usage = self.usage, self.usage + size
        if self.limit > 0 and not self.closed:
            self.crossings += before < CROSSING <= self.usage
            if before < self.limit <= self.usage:
                self.overflows += 1
                self.usage += 1
                self.outcomes[ReserveOutcome.FORCED] += 1
        self.high_water = max(self.high_water, self.usage)

    def give_back(self, size: int) -> None:
        self.usage -= size
        while self.waiting and self.admits():
            caller = self.waiting.pop(0)
            self.answered.append(caller)
            if caller.leaving:
                self.outcomes[ReserveOutcome.CANCELLED] += 1
            else:
                caller.granted = True
                self.outcomes[ReserveOutcome.RESERVED] += 1
                self.book(caller.size)

    def refuse(self, caller: Caller, outcome: ReserveOutcome, error: type[Exception]) -> None:
        self.waiting.remove(caller)
        self.answered.append(caller)
        self.outcomes[outcome] += 1
        caller.error = error


class MemoryHistory(RuleBasedStateMachine):
    """Callers, reservations, cancellation, turns of the loop and time in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.outcomes: Counter[ReserveOutcome] = Counter()
        self.crossings = 0
        self.held: list[Reservation] = []
        self.tasks: list[asyncio.Task[Reservation]] = []
        self.steps = 0
        self.begin(LIMIT)

    @initialize(limit=st.sampled_from([LIMIT] * 7 + [0]))
    def begin(self, limit: int) -> None:
        self.model = Model(limit)
        self.memory = MemoryLimitController(limit, MAX_WAITERS, self.clock, self.observe)
        self.memory.register_trigger(self.cross, CROSSING / LIMIT)
        self.memory.register_trigger(self.overflow, 1.0)

    def observe(self, outcome: ReserveOutcome, waited_seconds: float) -> None:
        self.outcomes[outcome] += 1
        assert waited_seconds >= 0.0

    def cross(self) -> None:
        self.crossings += 1

    def overflow(self) -> None:
        """Do the worst a callback can: take more, and fail."""
        self.held.append(self.memory.force_reserve(1))
        raise ZeroDivisionError

    # -- steps --------------------------------------------------------------------------------

    @rule(sizes=st.lists(SIZES, min_size=1, max_size=4), timeout_seconds=TIMEOUTS)
    def reserve(self, sizes: list[int], timeout_seconds: float | None) -> None:
        for size in sizes:
            self.turn()
            while (
                self.model.answered
            ):  # By a caller leaving in the same turn; reserving is a turn as well.
                self.turn()
            self.reserve_one(size, timeout_seconds)

    def reserve_one(self, size: int, timeout_seconds: float | None) -> None:
        due = None if timeout_seconds is None else self.clock.now() + timeout_seconds
        caller = Caller(size, due)
        self.ask(caller)
        caller.task = self.loop.create_task(self.memory.reserve(size, timeout_seconds))
        self.tasks.append(caller.task)
        at_once = caller not in self.model.waiting
        self.run_once()
        if not at_once:
            assert not caller.task.done()
        else:
            self.finish(caller)

    def ask(self, caller: Caller) -> None:
        model = self.model
        if model.closed:
            model.outcomes[ReserveOutcome.CLOSED] += 1
            caller.error = MemoryReserveClosedError
        elif model.admits():
            caller.granted = True
            model.outcomes[ReserveOutcome.RESERVED] += 1
            model.book(caller.size)
        elif len(model.waiting) >= MAX_WAITERS:
            model.outcomes[ReserveOutcome.QUEUE_FULL] += 1
            caller.error = MemoryReserveQueueFullError
        else:
            model.waiting.append(caller)

    @rule(size=SIZES)
    def try_reserve(self, size: int) -> None:
        if self.model.closed:
            self.model.outcomes[ReserveOutcome.CLOSED] += 1
            with pytest.raises(MemoryReserveClosedError):
                self.memory.try_reserve(size)
            return
        admitted = self.model.admits()
        kind = ReserveOutcome.RESERVED if admitted else ReserveOutcome.BUFFER_FULL
        self.model.outcomes[kind] += 1
        reservation = self.memory.try_reserve(size)
        assert (reservation is not None) == admitted
        if reservation is not None:
            self.model.book(size)
            self.held.append(reservation)

    @rule(size=SIZES)
    def force_reserve(self, size: int) -> None:
        self.model.outcomes[ReserveOutcome.FORCED] += 1
        self.model.book(size)
        self.held.append(self.memory.force_reserve(size))

    @precondition(lambda self: self.held)
    @rule(pick=PICKS, size=SIZES)
    def resize(self, pick: int, size: int) -> None:
        reservation = self.held[pick % len(self.held)]
        before = reservation.size
        if reservation.released:
            with pytest.raises(RuntimeError):
                reservation.resize(size)
            return
        reservation.resize(size)
        if size > before:
            self.model.book(size - before)
        else:
            self.model.give_back(before - size)

    @precondition(lambda self: self.live())
    @rule(pick=PICKS)
    def release(self, pick: int) -> None:
        live = self.live()
        reservation = live[pick % len(live)]
        self.model.give_back(reservation.size)
        reservation.release()
        assert reservation.size == 0

    def live(self) -> list[Reservation]:
        return [reservation for reservation in self.held if not reservation.released]

    @precondition(lambda self: len(self.live()) < len(self.held))
    @rule()
    def release_again(self) -> None:
        for reservation in self.held:
            if reservation.released:
                reservation.release()

    @rule()
    def release_everything(self) -> None:
        for reservation in self.live():
            self.model.give_back(reservation.size)
            reservation.release()

    @precondition(lambda self: self.model.waiting or self.model.answered)
    @rule(pick=PICKS)
    def cancel(self, pick: int) -> None:
        """Cancel a caller that waits, or was answered without a turn since."""
        callers = self.model.waiting + self.model.answered
        caller = callers[pick % len(callers)]
        assert caller.task is not None
        caller.task.cancel()
        caller.leaving = True

    @rule()
    def turn(self) -> None:
        answered, self.model.answered = self.model.answered, []
        for caller in answered:
            if caller.leaving and caller.granted:
                self.model.give_back(caller.size)
        for caller in [one for one in self.model.waiting if one.leaving]:
            self.model.waiting.remove(caller)
            answered.append(caller)
            self.model.outcomes[ReserveOutcome.CANCELLED] += 1
        # A caller passed over by this turn's release has had this turn as well.
        answered += [one for one in self.model.answered if one.leaving]
        self.model.answered = [one for one in self.model.answered if not one.leaving]
        self.run_once()
        for caller in answered:
            self.finish(caller)

    def run_once(self) -> None:
        """Run the event loop's ready callbacks once."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def finish(self, caller: Caller) -> None:
        task = caller.task
        assert task is not None
        assert task.done()
        assert task.cancelled() == caller.leaving
        if not caller.leaving:
            error = task.exception()
            assert (error is None) == caller.granted
            assert error is None or type(error) is caller.error
        if caller.granted and not caller.leaving:
            assert task.result().size == caller.size
            self.held.append(task.result())

    @rule(seconds=st.sampled_from([1.0, 4.0, 5.0, 20.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for caller in list(self.model.waiting):
            if caller.due is not None and caller.due <= self.clock.now():
                self.model.refuse(caller, ReserveOutcome.TIMED_OUT, MemoryReserveTimeoutError)

    @precondition(lambda self: self.steps > 30)
    @rule()
    def close(self) -> None:
        self.memory.close()
        self.model.closed = True
        for caller in list(self.model.waiting):
            self.model.refuse(caller, ReserveOutcome.CLOSED, MemoryReserveClosedError)

    # -- rules --------------------------------------------------------------------------------

    @invariant()
    def usage_is_the_sum_of_what_is_held(self) -> None:
        self.steps += 1
        granted = [one for one in self.model.answered if one.granted]
        held = sum(reservation.size for reservation in self.held)
        assert self.memory.current_usage == held + sum(one.size for one in granted)
        assert self.memory.statistics().reservations == len(self.live()) + len(granted)

    @invariant()
    def usage_is_what_the_rules_say(self) -> None:
        figures = self.memory.statistics()
        assert figures.usage_bytes == self.model.usage >= 0
        assert figures.high_water_bytes == self.model.high_water

    @invariant()
    def nobody_waits_who_could_go_on(self) -> None:
        waiting = self.memory.statistics().waiters
        assert waiting == len(self.model.waiting) <= MAX_WAITERS
        assert not waiting or self.memory.current_usage > LIMIT

    @invariant()
    def every_request_ends_in_one_outcome(self) -> None:
        assert self.outcomes == self.model.outcomes
        figures = self.memory.statistics()
        refused = (ReserveOutcome.BUFFER_FULL, ReserveOutcome.QUEUE_FULL)
        assert figures.rejected_total == sum(self.outcomes[one] for one in refused)
        assert figures.timeouts_total == self.outcomes[ReserveOutcome.TIMED_OUT]

    @invariant()
    def triggers_run_once_for_each_crossing(self) -> None:
        figures = self.memory.statistics()
        assert self.crossings == self.model.crossings
        assert figures.triggers_failed_total == self.model.overflows
        assert figures.triggers_fired_total == self.model.crossings + self.model.overflows

    def teardown(self) -> None:
        """Check that nothing is left when all holders release and all waiters leave."""
        try:
            self.close()
            self.turn()
            for reservation in self.held:
                reservation.release()
            assert self.memory.current_usage == 0
            assert self.memory.statistics().reservations == self.memory.statistics().waiters == 0
            answers = self.outcomes.copy()
            self.clock.advance(1_000.0)
            assert self.outcomes == answers
            assert not asyncio.all_tasks(self.loop)
        finally:
            self.end_tasks()
            self.loop.close()

    def end_tasks(self) -> None:
        """Cancel all tasks of a half-failed history."""
        for task in self.tasks:
            task.cancel()
        self.run_once()
        for task in self.tasks:
            if not task.cancelled():
                task.exception()


TestMemoryHistory = MemoryHistory.TestCase
TestMemoryHistory.settings = settings(max_examples=many(150), stateful_step_count=40, deadline=None)
