"""A failing custom policy harms no request: the fault is reported, and fifo takes over."""

import math
import re
import statistics

import pytest

from limiter.admission.fair import FairAdmission
from limiter.admission.policy import Admission
from limiter.admission.rules import AdmissionRules
from limiter.admission.view import BudgetView
from limiter.errors import PermitAcquireRefusedError
from limiter.permits.account import Waiter
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.clocks.manual_clock import ManualClock

REASON = PermitAcquireRefusedError("too_late", "Too late")
OF_OURS = PermitAcquireRefusedError("timed_out", "Never waited")


class World:
    """A semaphore of 100, held by one permit, and two waiting requests."""

    def __init__(self, policy: type[Admission]) -> None:
        self.clock = ManualClock()
        self.semaphore = AsyncSemaphore(100, 10, 25.0, self.clock, rules=AdmissionRules(policy))
        self.held = self.semaphore.request(100, owner="holder").result()
        self.first, self.second = (self.semaphore.request(60, owner=one) for one in ("one", "two"))

    @property
    def fault(self) -> str:
        return self.semaphore.statistics().policy_fault


def oldest(policy: Admission) -> Waiter:
    return next(iter(policy.view.waiting))


def averaged(_policy: Admission) -> float:
    """Raise an error in a function of the standard library."""
    return statistics.mean([])


def emptied(policy: Admission) -> None:
    """Try to drop all waiting requests, which a policy may not."""
    policy.view.waiting.clear()  # type: ignore[attr-defined]


async def later(_policy: Admission) -> None:
    """Answer like a policy with coroutine methods."""


def answering(hook: str, answer: object) -> type[Admission]:
    """Return a policy fair with one overridden answer while requests wait; exception types are
    raised.
    """

    class Answering(FairAdmission):
        def __getattribute__(self, name: str) -> object:
            if name != hook or not self.view.waiting:
                return super().__getattribute__(name)
            if isinstance(answer, type):
                raise answer("a bug")
            return lambda *_: answer(self) if callable(answer) else answer

    return Answering


@pytest.mark.parametrize(
    ("hook", "answer", "sentence"),
    [
        ("refuses", "no", "answers 'no', expected is None or a PermitAcquireRefusedError"),
        ("refuses", ValueError("no"), r"answers ValueError\('no'\), expected is None or a Permit"),
        ("refuses", OF_OURS, r"answers .*'timed_out'.* whose label is not one of the limiter's"),
        ("sheds", REASON, "raises TypeError: cannot unpack"),
        ("sheds", (Waiter(60), REASON), r"answers \(<Waiter for 60 of None>, .* None or a request"),
        ("sheds", lambda policy: (oldest(policy), "no"), r"answers \(<Waiter for .*>, 'no'\), exp"),
        ("wait_seconds", math.nan, "answers nan, expected is a number of seconds, finite and 0 or"),
        ("wait_seconds", math.inf, "answers inf, expected is a number"),
        ("wait_seconds", -1.0, "answers -1.0, expected is a number"),
        ("wait_seconds", None, "answers None, expected is a number"),
        ("turn", "first", "answers 'first', expected is None or a request that waits"),
        ("turn", Waiter(60), "answers <Waiter for 60 of None>, expected is None or a request that"),
        ("next", oldest, "answers <Waiter for 60 of 'one'>, .* and needs no more than is free"),
        ("turn", later, r"answers <coroutine object later .*, expected is no coroutine"),
        ("turn", KeyError, r"raises KeyError: 'a bug' \(test_guarded.py, line \d+\)$"),
        ("turn", SystemExit, r"raises SystemExit: a bug \(test_guarded.py, line \d+\)$"),
        ("turn", averaged, r"raises statistics.StatisticsError: .* \(test_guarded.py, line \d+\)$"),
        ("turn", emptied, r"raises AttributeError: .* \(test_guarded.py, line \d+\)$"),
    ],
)  # fmt: skip
def test_a_wrong_answer_of_a_policy_is_reported_and_policy_fifo_takes_over(
    hook, answer, sentence
) -> None:
    world = World(answering(hook, answer))
    assert re.match(f"{hook} {sentence}", world.fault)
    world.semaphore.release(world.held)
    assert (world.first.done, world.second.done) == (True, False)
    world.semaphore.release(world.first.result())
    assert world.second.result().size == 60


@pytest.mark.parametrize(
    "hook",
    ["turn", "sheds", "next", "admitted", "gave_back", "took_on", "accounts_changed"],
)
def test_an_error_raised_by_a_policy_does_not_reach_the_releasing_caller(hook: str) -> None:
    world = World(FairAdmission)
    policy = world.semaphore._granting._admission._policy  # type: ignore[attr-defined]
    policy.__class__ = answering(hook, KeyError)
    world.semaphore.release(world.held)
    assert world.fault.startswith(f"{hook} raises KeyError: 'a bug'")
    assert (world.first.done, world.second.done) == (True, False)
    world.semaphore.release(world.first.result())
    world.semaphore.release(world.second.result())
    assert world.semaphore.acquired_permits == 0


def test_a_failed_policy_is_logged_once_with_its_name(caplog) -> None:
    world = World(answering("turn", KeyError))
    world.semaphore.release(world.held)
    (record,) = caplog.records
    name = f"{__name__}:answering.<locals>.Answering"
    said = f"The admission policy {name} has failed, policy fifo takes its place: {world.fault}"
    assert record.getMessage() == said
    assert world.semaphore.policy_name == f"fifo, as {name} has failed: {world.fault}"


class TheFirstAlways(Admission):
    """A policy that misses its first request's departure."""

    def __init__(self, view: BudgetView) -> None:
        super().__init__(view)
        self.first: Waiter | None = None

    def add(self, waiter: Waiter) -> None:
        self.first = self.first or waiter

    def turn(self) -> Waiter | None:
        return self.first


def test_a_policy_cannot_grant_a_request_twice() -> None:
    world = World(TheFirstAlways)
    world.semaphore.release(world.held)
    assert world.semaphore.acquired_permits == 60
    assert "turn answers" in world.fault
    world.semaphore.release(world.first.result())
    assert world.second.done


def test_a_policy_cannot_grant_an_abandoned_request() -> None:
    world = World(TheFirstAlways)
    world.semaphore.abandon(world.first)
    world.semaphore.release(world.held)
    assert world.semaphore.acquired_permits == world.second.result().size == 60


class ServesNobody(Admission):
    def next(self, turn: Waiter, available: int) -> Waiter | None:
        return None

    def wait_seconds(self, waiter: Waiter) -> float:
        return math.nan if waiter.owner == "three" else self.view.timeout_seconds


def test_a_request_held_back_by_a_policy_is_granted_right_after_the_policy_fails() -> None:
    world = World(ServesNobody)
    world.semaphore.release(world.held)
    assert not world.first.done
    third = world.semaphore.request(60, owner="three")
    world.clock.advance(0.0)
    assert [one.done for one in (world.first, world.second, third)] == [True, False, False]


def test_a_policy_that_holds_the_server_up_for_over_a_second_is_replaced(monkeypatch) -> None:
    monkeypatch.setattr("limiter.admission.guarded._LONGEST_SECONDS", -1.0)
    world = World(answering("turn", None))
    world.semaphore.release(world.held)
    assert (world.first.done, world.second.done) == (True, False)
    assert re.match(r"validate takes 0\.0 s, in which nobody is served$", world.fault)
