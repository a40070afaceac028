"""Under any policy no permit is lost or granted twice, and no waiting request forgotten."""

import math
from random import Random
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from limiter.admission.fair import FairAdmission
from limiter.admission.policy import Admission
from limiter.admission.rules import AdmissionRules
from limiter.errors import PermitAcquireRefusedError
from limiter.permits.account import Waiter
from tests.properties.limiter.limiter_books import Ask
from tests.properties.limiter.limiter_history import TIMEOUT_SECONDS, LimiterHistory
from tests.support.examples import many

OVERDRAFT_MAX = 3
HOOKS = [
    name for name in vars(Admission) if not name.startswith("_") and name != "counts_anonymous"
]
YES_OR_NO = ("admits_new", "admits_growth", "precedes")


class Whims:
    """Random answers of a policy: free where it may choose, wrong now and then."""

    def __init__(self, chance: Random, wrong: float) -> None:
        self._chance = chance
        self._wrong = wrong
        self._known: list[Waiter] = []

    def answer(self, policy: Admission, hook: str, args: tuple[Any, ...]) -> Any:
        self._known += [each for each in args if isinstance(each, Waiter)]
        if self._chance.random() < self._wrong:
            return self._wrong_answer()
        if self._chance.random() < 0.7:
            return getattr(super(type(policy), policy), hook)(*args)
        return self._own_answer(policy, hook, args)

    def _wrong_answer(self) -> Any:
        nothing = [-1.0, math.nan, math.inf, "", (), (None, None), object(), Waiter(3)]
        answer = self._chance.choice([*nothing, *self._known[-8:], None])
        if answer is None:
            raise KeyError("a bug")
        return answer

    def _own_answer(self, policy: Admission, hook: str, args: tuple[Any, ...]) -> Any:
        waiting = list(policy.view.waiting)
        if hook == "next":
            waiting = [one for one in waiting if one.needed <= args[1]]
        reason = PermitAcquireRefusedError("at_will", "As I like")
        if hook in YES_OR_NO:
            return self._chance.choice([False, True])
        if hook == "refuses":
            return reason
        if hook == "sheds":
            return (self._chance.choice(waiting), reason) if waiting else None
        if hook in ("turn", "next", "crowded_out_by"):
            return self._chance.choice([None, *waiting])
        return getattr(super(type(policy), policy), hook)(*args)


def policy_of(base: type[Admission], whims: Whims) -> type[Admission]:
    """Return a policy with every method answered by ``whims``."""

    def method(hook: str) -> Any:
        return lambda policy, *args: whims.answer(policy, hook, args)

    return type("AtWill", (base,), {hook: method(hook) for hook in HOOKS})


class AnyPolicyHistory(LimiterHistory):
    """A policy that chooses, refuses, raises and answers nonsense at random."""

    base: ClassVar[type[Admission]] = Admission

    @initialize(
        data=st.data(), seed=st.integers(0, 2**32), wrong=st.sampled_from([0.0, 0.01, 0.05])
    )
    def begin(self, data: st.DataObject, seed: int, wrong: float) -> None:
        policy = policy_of(self.base, Whims(Random(seed), wrong))
        self.admissions = [AdmissionRules(policy, OVERDRAFT_MAX)]  # type: ignore[misc]
        super().begin(data)

    def check_grant(self, ask: Ask, *, waited: bool) -> None:
        overdraft = OVERDRAFT_MAX if ask.grows is not None else 0
        assert self.books.needed(ask) <= self.available + overdraft

    def nobody_waits_in_vain(self) -> None:
        """After the policy's failure the oldest is next, and waits only if too large."""
        self.clock.advance(0.0)
        head = next(iter(self.books.asks.values()), None)
        if self.semaphore.statistics().policy_fault and head is not None:
            assert not 0 < self.available >= self.books.needed(head)

    def come_to_rest(self) -> None:
        self.clock.advance(TIMEOUT_SECONDS)
        assert not self.books.asks


class AnyFairPolicyHistory(AnyPolicyHistory):
    """Random answers on top of policy fair, which corrupt its books."""

    base: ClassVar[type[Admission]] = FairAdmission
    anonymous_have_an_account: ClassVar[bool] = True


TestAnyPolicyHistory = AnyPolicyHistory.TestCase
TestAnyPolicyHistory.settings = settings(
    max_examples=many(100), stateful_step_count=40, deadline=None
)
TestAnyFairPolicyHistory = AnyFairPolicyHistory.TestCase
TestAnyFairPolicyHistory.settings = settings(
    max_examples=many(150), stateful_step_count=40, deadline=None
)
