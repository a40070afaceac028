"""A custom policy chooses the next request, refusals with reasons, and time limits."""

import pytest

from limiter.admission.fair import FairAdmission
from limiter.admission.policy import Admission
from limiter.admission.rules import AdmissionRules
from limiter.errors import (
    PermitAcquireRefusedError,
    PermitAcquireTimeoutError,
)
from limiter.permits.account import Waiter
from limiter.permits.permit import AcquireOutcome
from limiter.semaphore.async_semaphore import AsyncSemaphore
from limiter.semaphore.outcomes import MOST_LABELS
from tests.support.clocks.manual_clock import ManualClock


class World:
    """A semaphore of 100 under a custom policy, held by one permit; records reports."""

    def __init__(self, policy: type[Admission]) -> None:
        self.clock = ManualClock()
        self.outcomes: list[AcquireOutcome] = []
        self.semaphore = AsyncSemaphore(
            100,
            10,
            25.0,
            self.clock,
            lambda outcome, _, count: self.outcomes.extend([outcome] * count),
            AdmissionRules(policy),
        )
        self.held = self.semaphore.request(100, owner="holder").result()
        self.semaphore.statistics()
        self.outcomes.clear()

    def wait(self, size: int, owner: str = "one") -> Waiter:
        return self.semaphore.request(size, owner=owner, namespace="a/b")


class NewestFirst(Admission):
    def turn(self) -> Waiter | None:
        return next(reversed(self.view.waiting), None)


class Strict(Admission):
    def refuses(self, waiter: Waiter) -> PermitAcquireRefusedError | None:
        if waiter.size < 10:
            return None
        return PermitAcquireRefusedError(f"of_{waiter.size}", f"{waiter.size} is too much")


class AtMostTwoWait(FairAdmission):
    def sheds(self) -> tuple[Waiter, PermitAcquireRefusedError] | None:
        if len(self.view.waiting) <= 2:
            return None
        oldest = next(iter(self.view.waiting))
        return oldest, PermitAcquireRefusedError("crowded", "Two wait already")


class HalfAsLong(Admission):
    def wait_seconds(self, waiter: Waiter) -> float:
        return self.view.timeout_seconds / 2


def test_a_policy_without_overrides_serves_the_oldest_first() -> None:
    world = World(Admission)
    first, second = world.wait(60), world.wait(60)
    world.semaphore.release(world.held)
    assert (first.done, second.done) == (True, False)


def test_a_policy_may_serve_in_any_order() -> None:
    world = World(NewestFirst)
    waiters = [world.wait(60) for _ in range(3)]
    world.semaphore.release(world.held)
    assert [each.done for each in waiters] == [False, False, True]


def test_a_request_is_refused_before_waiting_with_the_reason_of_the_policy() -> None:
    world = World(Strict)
    with pytest.raises(PermitAcquireRefusedError, match="50 is too much") as caught:
        world.wait(50)
    assert caught.value.label == "of_50"
    assert world.outcomes == [AcquireOutcome.REFUSED]
    figures = world.semaphore.statistics()
    assert (figures.refused, figures.queue_size, figures.holders) == ({"of_50": 1}, 0, 1)
    assert not world.wait(9).done


def test_a_request_that_fits_is_granted_though_the_policy_would_refuse_a_waiter() -> None:
    world = World(Strict)
    world.semaphore.release(world.held)
    assert world.wait(50).done


def test_a_policy_may_refuse_an_older_waiter_in_favour_of_a_newer_waiter() -> None:
    world = World(AtMostTwoWait)
    first, second = world.wait(60, "one"), world.wait(60, "two")
    third = world.wait(60, "three")
    with pytest.raises(PermitAcquireRefusedError, match="Two wait already"):
        first.result()
    assert not second.done
    assert not third.done
    assert world.semaphore.statistics().refused == {"crowded": 1}
    world.semaphore.release(world.held)
    assert second.done


def test_a_policy_sets_the_timeout_of_a_waiter() -> None:
    world = World(HalfAsLong)
    waiter = world.wait(60)
    world.clock.advance(12.4)
    assert not waiter.done
    world.clock.advance(0.1)
    with pytest.raises(PermitAcquireTimeoutError):
        waiter.result()


def test_a_policy_is_not_called_for_a_turn_while_no_request_waits() -> None:
    class Asked(Admission):
        def turn(self) -> Waiter | None:
            raise AssertionError("nobody waits")

    world = World(Asked)
    assert world.semaphore.contention.current() is None
    assert not world.semaphore.statistics().policy_fault


def test_refusal_labels_beyond_a_bound_are_counted_together() -> None:
    world = World(Strict)
    for size in range(10, 10 + MOST_LABELS + 5):
        with pytest.raises(PermitAcquireRefusedError):
            world.wait(size)
    refused = world.semaphore.statistics().refused
    assert (len(refused), refused["other"]) == (MOST_LABELS + 1, 5)


@pytest.mark.parametrize("label", ["", "Too late", "1st", "a" * 41])
def test_an_invalid_refusal_label_is_rejected_by_name(label: str) -> None:
    with pytest.raises(ValueError, match=f"label {label!r} of a refusal: expected at most 40"):
        PermitAcquireRefusedError(label, "Too late")
