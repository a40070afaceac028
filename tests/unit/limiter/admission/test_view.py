"""A policy's view of the budget and the queue."""

import pytest

from limiter.admission.policy import Admission
from limiter.admission.view import BudgetView
from tests.unit.limiter.admission.test_policy import World

VIEWS: list[BudgetView] = []


class Looking(Admission):
    def __init__(self, view: BudgetView) -> None:
        super().__init__(view)
        VIEWS.append(view)


def test_a_policy_sees_limit_queue_clock_and_the_longest_waiting_time() -> None:
    world, view = World(Looking), VIEWS[-1]
    assert (view.waiting_permits, view.oldest_wait_seconds) == (0, 0.0)
    first, second = world.wait(30), world.wait(40)
    world.clock.advance(3.0)
    assert (view.budget.max_permits, view.budget.available_permits) == (100, 0)
    assert (list(view.waiting), view.waiting_permits) == ([first, second], 70)
    assert (view.oldest_wait_seconds, view.clock.now()) == (3.0, world.clock.now())
    assert view.timeout_seconds == 25.0
    world.semaphore.abandon(first)
    assert view.waiting_permits == 40


def test_the_drain_rate_is_the_permits_granted_to_waiters_per_second() -> None:
    # Measured from the first reading
    world, view = World(Looking), VIEWS[-1]
    assert view.drain_rate is None
    waiters = [world.wait(50) for _ in range(10)]
    assert view.drain_rate is None
    # 50 are released each second
    world.held = world.semaphore.request_update(world.held, 50).result()
    for waiter in waiters[:5]:
        world.clock.advance(1.0)
        world.semaphore.release(waiter.result())
    assert view.drain_rate == pytest.approx(50, rel=0.3)


def test_time_without_waiters_does_not_lower_the_drain_rate() -> None:
    world, view = World(Looking), VIEWS[-1]
    assert view.drain_rate is None
    waiter = world.wait(100)
    world.clock.advance(2.0)
    world.semaphore.release(world.held)
    assert view.drain_rate == pytest.approx(50, rel=0.3)
    measured = view.drain_rate
    world.clock.advance(1000.0)
    assert view.drain_rate == measured
    # Measured while a request waits in vain.
    world.held = waiter.result()
    world.wait(1)
    world.clock.advance(10.0)
    assert view.drain_rate < measured / 2


def test_a_timed_out_wait_lowers_the_drain_rate() -> None:
    world, view = World(Looking), VIEWS[-1]
    assert view.drain_rate is None
    waiter = world.wait(100)
    world.clock.advance(1.0)
    world.semaphore.release(world.held)
    world.held = waiter.result()
    world.wait(1)
    world.clock.advance(30.0)  # The request has timed out.
    assert not view.waiting
    assert view.drain_rate is not None
    assert view.drain_rate < 1
