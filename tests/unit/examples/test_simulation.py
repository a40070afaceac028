"""Virtual time keeps the order of events, and a fault of the limiter does not go unnoticed."""

from functools import partial

import pytest

from examples.simulation import (
    Ending,
    LimiterFaultError,
    VirtualClock,
    ask,
    ending_of,
    require_sound,
)
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import PermitAcquireClosedError
from limiter.permits.permit import Permit
from limiter.semaphore.async_semaphore import AsyncSemaphore

FIFO = AdmissionRules()
FAIR = AdmissionRules(policy=AdmissionPolicy.FAIR)


def semaphore_of(limit: int, clock: VirtualClock, queue: int = 10) -> AsyncSemaphore:
    return AsyncSemaphore(limit, queue, 5.0, clock, rules=FIFO)


def test_events_run_in_order_of_time_and_then_of_arming() -> None:
    clock = VirtualClock()
    seen: list[tuple[str, float]] = []
    for name, when in (("late", 2.0), ("first", 1.0), ("second", 1.0)):
        clock.call_at(when, lambda name: seen.append((name, clock.now())), name)
    clock.run()
    assert seen == [("first", 1.0), ("second", 1.0), ("late", 2.0)]


def test_an_event_armed_for_the_past_runs_now_without_turning_time_back() -> None:
    clock = VirtualClock()
    seen: list[float] = []
    clock.call_at(3.0, lambda: clock.call_at(1.0, lambda: seen.append(clock.now())))
    clock.run()
    assert seen == [3.0]


def test_a_disarmed_event_does_not_run_and_takes_no_time() -> None:
    clock = VirtualClock()
    clock.call_at(1.0, lambda: None)
    clock.call_at(25.0, pytest.fail, "it was disarmed").cancel()
    clock.run()
    assert clock.now() == 1.0


def test_a_waiter_times_out_in_virtual_time() -> None:
    clock = VirtualClock()
    semaphore = semaphore_of(10, clock)
    semaphore.request(10)
    answers: list[tuple[Permit | None, Ending, float]] = []
    ask(partial(semaphore.request, 1), lambda p, e: answers.append((p, ending_of(e), clock.now())))
    clock.run()
    assert answers == [(None, Ending.TIMED_OUT, 5.0)]


def test_a_request_at_a_full_queue_is_refused_immediately() -> None:
    semaphore = semaphore_of(10, VirtualClock(), queue=1)
    semaphore.request(10)
    semaphore.request(1)
    answers: list[Ending] = []
    ask(partial(semaphore.request, 1), lambda _, error: answers.append(ending_of(error)))
    assert answers == [Ending.QUEUE_FULL]


def test_an_unexpected_error_is_not_counted_as_a_known_ending() -> None:
    with pytest.raises(KeyError):
        ending_of(PermitAcquireClosedError())


def test_permits_still_held_at_the_end_are_a_limiter_fault() -> None:
    semaphore = semaphore_of(10, VirtualClock())
    permit = semaphore.request(3).result()
    with pytest.raises(LimiterFaultError, match="3 permits are held"):
        require_sound(semaphore, FIFO)
    semaphore.release(permit)
    require_sound(semaphore, FIFO)


def test_exceeding_the_limit_by_a_tenth_is_a_fault_under_fifo_but_not_under_fair() -> None:
    semaphore = semaphore_of(110, VirtualClock())
    semaphore.release(semaphore.request(110).result())
    semaphore.change_limits(max_permits=100)
    require_sound(semaphore, FAIR)
    with pytest.raises(LimiterFaultError, match="110 permits were held at once"):
        require_sound(semaphore, FIFO)
