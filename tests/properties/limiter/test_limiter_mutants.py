"""The properties bite: each deliberate fault of the limiter is found by its state machine.

A mutant is the real class with one changed function. The search is derandomized, so that it finds a
mutant always or never.
"""

from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from limiter.admission import rules
from limiter.admission.fair import FairAdmission
from limiter.admission.fair_queue import TurnQueue
from limiter.errors import PermitAcquireTimeoutError
from limiter.memory.shared_leases import LeaseReference, SharedLeases
from limiter.permits.account import Account, Place, SharedHolder, Waiter
from limiter.permits.permit import AcquireOutcome, Permit
from limiter.semaphore import async_semaphore
from limiter.semaphore.async_semaphore import AsyncSemaphore
from limiter.semaphore.granting import Granting
from limiter.semaphore.owners import SharedHolders
from tests.properties.limiter import test_turns_properties
from tests.properties.limiter.limiter_history import LimiterHistory
from tests.properties.limiter.test_limiter_fair_properties import CappedHistory, FairHistory
from tests.properties.limiter.test_limiter_fifo_properties import FifoHistory
from tests.properties.limiter.test_shared_leases_properties import LeaseHistory

SEARCH = settings(
    max_examples=400,
    stateful_step_count=30,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


class ReleaseThatWakesNobody(AsyncSemaphore):
    def release(self, permit: Permit) -> None:
        permit.returned = True
        self._books.release(permit)


class ReleaseThatCountsTwice(AsyncSemaphore):
    def release(self, permit: Permit) -> None:
        if permit.returned and permit.counted:
            self._budget.acquired -= 1
        super().release(permit)


class TimeoutThatLeavesItsPlaceTaken(Granting):
    def _time_out(self, waiter: Waiter) -> None:
        self._outcomes.tell(AcquireOutcome.TIMED_OUT)
        waiter.settle(None, PermitAcquireTimeoutError(0.0))


class TimeoutThatIsToldTwice(Granting):
    def _time_out(self, waiter: Waiter) -> None:
        self._outcomes.tell(AcquireOutcome.TIMED_OUT)
        super()._time_out(waiter)


class AbandonThatLeaksWhatWasJustGranted(Granting):
    def abandon(self, waiter: Waiter) -> None:
        if waiter.permit is None:
            super().abandon(waiter)


class AbandonThatForgetsTheOldPermit(Granting):
    def _take_back(self, waiter: Waiter, permit: Permit) -> None:
        self._books.release(permit)


class LeaverWhoKeepsItsPlaceInTheQueue(Granting):
    def give_up(self, holder: Account | SharedHolder) -> None:
        for permit in list(holder.permits):
            self._books.release(permit)


class HigherLimitThatGrantsNobody(AsyncSemaphore):
    def change_limits(
        self,
        max_permits: int | None = None,
        max_queue_size: int | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        if max_permits is None or max_permits < self.max_permits:
            super().change_limits(max_permits, max_queue_size, timeout_seconds)
        else:
            self._budget.max_permits = max_permits


class LeaseThatIsChargedToEachSharer(SharedHolders):
    def join(self, holder: SharedHolder, owner: Hashable) -> None:
        super().join(holder, owner)
        self._books.budget.acquired += holder.held if holder.references > 1 else 0


class LeaseThatTheFirstToLeaveReturns(SharedHolders):
    def leave(self, holder: SharedHolder, owner: Hashable) -> None:
        self._granting.give_up(holder)
        super().leave(holder, owner)


class NewcomerThatDoesNotQueue(Granting):
    def _enqueue(self, waiter: Waiter) -> None:
        if not self._budget.closed and 0 < self._budget.available_permits >= waiter.needed:
            self.grant(waiter)
            self._outcomes.untold_grants += 1
        else:
            super()._enqueue(waiter)


class OverdraftBesidesAnother(Granting):
    def _end_stall(self, turn: Waiter | None) -> bool:
        self._budget.overdraft = False
        return super()._end_stall(turn)


class StallThatNobodyEnds(Granting):
    def _end_stall(self, turn: Waiter | None) -> bool:
        return False


class GrowthThatWaitsBehindNewWork(FairAdmission):
    def turn(self) -> Waiter | None:
        account = self._hungry.first() or self._holding.first()
        return account.first_in_line if account is not None else super().turn()


class HungryWhoWaitWithTheOthers(FairAdmission):
    def _place_of(self, account: Account, namespace: str, size: int) -> Place:
        place = super()._place_of(account, namespace, size)
        return self._holding if place is self._hungry else place


class ShareThatIsTheWholeLimit(FairAdmission):
    def _quota(self) -> int:
        return self._budget.max_permits


class BypassWithoutABound(FairAdmission):
    def admitted(self, waiter: Waiter, turn: Waiter) -> None:
        super().admitted(waiter, turn)
        turn.passed_permits = 0


class NobodyMayPass(FairAdmission):
    def next(self, turn: Waiter, available: int) -> Waiter | None:
        return turn if turn.needed <= available else None


class ShareThatNobodyLooksAtAgain(FairAdmission):
    def holds_changed(self, account: Account) -> None:
        pass

    def accounts_changed(self) -> None:
        pass


class CapThatIsNotAskedFor(FairAdmission):
    def _place_of(self, account: Account, namespace: str, size: int) -> Place:
        self._caps.any = False
        place = super()._place_of(account, namespace, size)
        self._caps.any = True
        return place


class CapThatLetsNobodyGo(FairAdmission):
    def _look_again(self, namespace: str) -> None:
        pass


# Mostly competition: these mutants break only after several steps.
RARE = (
    "abandon_a_granted_request",
    "abandon_a_waiting_request",
    "acquire_now_or_never",
    "cancel_owner",
    "change_queue_and_timeout",
    "change_the_limit",
    "close",
    "join",
    "leave",
    "share",
    "time_passes",
    "update",
)
CompetitionHistory: type[LimiterHistory] = type(
    "CompetitionHistory", (FairHistory,), dict.fromkeys(RARE)
)

MUTANTS: list[tuple[type[LimiterHistory], type[object]]] = [
    (FifoHistory, ReleaseThatWakesNobody),
    (FifoHistory, ReleaseThatCountsTwice),
    (FifoHistory, TimeoutThatLeavesItsPlaceTaken),
    (FifoHistory, TimeoutThatIsToldTwice),
    (FifoHistory, AbandonThatLeaksWhatWasJustGranted),
    (FifoHistory, AbandonThatForgetsTheOldPermit),
    (FifoHistory, LeaverWhoKeepsItsPlaceInTheQueue),
    (FifoHistory, HigherLimitThatGrantsNobody),
    (FifoHistory, LeaseThatIsChargedToEachSharer),
    (FifoHistory, LeaseThatTheFirstToLeaveReturns),
    (FifoHistory, NewcomerThatDoesNotQueue),
    (FairHistory, ReleaseThatWakesNobody),
    (CompetitionHistory, OverdraftBesidesAnother),
    (CompetitionHistory, StallThatNobodyEnds),
    (CompetitionHistory, GrowthThatWaitsBehindNewWork),
    (CompetitionHistory, HungryWhoWaitWithTheOthers),
    (CompetitionHistory, ShareThatIsTheWholeLimit),
    (CompetitionHistory, BypassWithoutABound),
    (CompetitionHistory, NobodyMayPass),
    (FairHistory, ShareThatNobodyLooksAtAgain),
    (CappedHistory, CapThatIsNotAskedFor),
    (CappedHistory, CapThatLetsNobodyGo),
]


def name_of(one: type[object]) -> str:
    return one.__name__


@pytest.mark.parametrize(("history", "mutant"), MUTANTS, ids=name_of)
def test_the_properties_find_this_mutant(
    history: type[LimiterHistory], mutant: type[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A changed semaphore, or a semaphore with a changed part
    where = rules if issubclass(mutant, FairAdmission) else async_semaphore
    monkeypatch.setattr(where, mutant.__mro__[1].__name__, mutant)
    mutated = type("Mutated", (history,), {"semaphore_class": async_semaphore.AsyncSemaphore})
    with pytest.raises(AssertionError):
        run_state_machine_as_test(mutated, settings=SEARCH)


class LeaseThatEndsWithTheFirstToLeave(SharedLeases):
    def give_back(self, reference: LeaseReference, lease: Any) -> None:
        self._semaphore._granting.give_up(lease.holder)
        super().give_back(reference, lease)


class LeaseThatIsFoundAfterItsEnd(SharedLeases):
    def _forget(self, lease: Any) -> None:
        pass


class LeaseThatIsChargedAgain(SharedLeases):
    def reference(
        self, key: Hashable, size_bytes: int, owner: Hashable, namespace: str = ""
    ) -> LeaseReference:
        self._leases.pop(key, None)
        return super().reference(key, size_bytes, owner, namespace)


@pytest.mark.parametrize(
    "mutant",
    [LeaseThatEndsWithTheFirstToLeave, LeaseThatIsFoundAfterItsEnd, LeaseThatIsChargedAgain],
)
def test_the_properties_find_this_mutant_of_leases(mutant: type[SharedLeases]) -> None:
    mutated = type("Mutated", (LeaseHistory,), {"leases_class": mutant})
    with pytest.raises(AssertionError):
        run_state_machine_as_test(mutated, settings=SEARCH)


class TurnThatCostsNothing(TurnQueue[Any]):
    def served(self, child: object, size: int) -> None:
        pass


class TurnThatCostsTheSame(TurnQueue[Any]):
    def served(self, child: object, size: int) -> None:
        super().served(child, 1)


@pytest.mark.parametrize("mutant", [TurnThatCostsNothing, TurnThatCostsTheSame])
def test_the_properties_find_this_mutant_of_turns(
    mutant: type[TurnQueue[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_turns_properties, "TurnQueue", mutant)
    with pytest.raises(AssertionError):
        test_turns_properties.test_who_waits_all_the_time_gets_as_many_bytes_as_the_others()


@pytest.mark.parametrize("mutant", list(dict.fromkeys(one for _, one in MUTANTS)), ids=name_of)
def test_a_mutant_changes_what_the_limiter_has(mutant: type[object]) -> None:
    # Its own definitions
    base = mutant.__mro__[1]
    own = [name for name, value in vars(mutant).items() if callable(value)]
    # A renamed function of the limiter would leave the mutant without effect
    assert own
    assert all(hasattr(base, name) for name in own)
