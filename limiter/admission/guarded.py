"""Protection of a semaphore from errors in a user's own admission policy.

A failed policy may have lost count of waiting requests and permits. Policy fifo, which needs
nothing but the queue, replaces a failed policy for good: no permit and no request is lost.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Coroutine
from functools import partialmethod
from pathlib import Path
from time import perf_counter
from traceback import extract_tb, format_exception_only
from typing import TYPE_CHECKING

from limiter.admission.fifo import FifoAdmission
from limiter.admission.policy import Admission
from limiter.errors import PermitAcquireRefusedError, PermitTooLargeError
from limiter.permits.permit import AcquireOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.admission.rules import AdmissionRules
    from limiter.admission.view import BudgetView
    from limiter.permits.account import Account, SharedHolder, Waiter

logger = logging.getLogger(__name__)

_SHOWN = 300
"""Most characters of a policy's answer or error in a log line."""
_LONGEST_SECONDS = 1.0
"""Longest call of a policy, in which the server serves nobody; a busy machine may take tenths."""
_LIMITER = Path(__file__).parents[1]
_OWN_LABELS = frozenset(each.name.lower() for each in AcquireOutcome)


def _is_reason(answer: object) -> bool:
    return isinstance(answer, PermitAcquireRefusedError) and answer.label not in _OWN_LABELS


def _is_yes_or_no(view: BudgetView, answer: object, *_: object) -> bool:
    return isinstance(answer, bool)


def _waits(view: BudgetView, answer: Waiter | None, *_: object) -> bool:
    return answer is None or answer in view.waiting


def _refuses(view: BudgetView, answer: object, waiter: Waiter) -> bool:
    return answer is None or _is_reason(answer)


def _sheds(view: BudgetView, answer: tuple[Waiter, object] | None) -> bool:
    waiter, reason = answer or (None, None)
    return answer is None or (waiter in view.waiting and _is_reason(reason))


def _is_seconds(view: BudgetView, answer: object, waiter: Waiter) -> bool:
    return isinstance(answer, int | float) and math.isfinite(answer) and answer >= 0


def _fits(view: BudgetView, answer: Waiter | None, turn: Waiter, available: int) -> bool:
    return answer is None or (answer in view.waiting and answer.needed <= available)


def _ends_stall(view: BudgetView, answer: tuple[Waiter, bool] | None, room: int) -> bool:
    if answer is None:
        return True
    waiter, granted = answer
    grows = waiter in view.waiting and waiter.previous is not None
    return grows and (not granted or waiter.needed <= room)


def _shares(view: BudgetView, answer: Account | None, holder: SharedHolder, waiter: Waiter) -> bool:
    return answer is None or holder.references_of(answer) > 0


_WAITS = "None or a request that waits"
_REASON = "a PermitAcquireRefusedError whose label is not one of the limiter's outcomes"
_ANSWERS: dict[str, tuple[Callable[..., bool], str]] = {
    "refuses": (_refuses, f"None or {_REASON}"),
    "sheds": (_sheds, f"{_WAITS} and {_REASON}"),
    "wait_seconds": (_is_seconds, "a number of seconds, finite and 0 or more"),
    "turn": (_waits, _WAITS),
    "next": (_fits, f"{_WAITS} and needs no more than is free"),
    "ends_stall": (_ends_stall, "None or a growth that waits and whether it is granted"),
    "crowded_out_by": (_waits, _WAITS),
    "stands_for": (_shares, "None or the account of a sharing owner"),
    **dict.fromkeys(("admits_new", "admits_growth", "precedes"), (_is_yes_or_no, "True or False")),
}
"""Checks by method of the policy's answer, and the expected answer in words."""


class GuardedAdmission(Admission):
    """Admission policy that calls a user's policy and, once that fails, policy fifo for good.

    A policy fails when it raises, returns an invalid answer, or takes longer than a second.

    Attributes:
        fault: The policy's first invalid answer or error; empty while the policy works.
        on_fault: Called right after a fault, to serve requests that the policy held back.
    """

    def __init__(self, rules: AdmissionRules, view: BudgetView) -> None:
        super().__init__(view)
        self._name = rules.policy_name
        self._policy = rules.policy_class(view)
        self._fifo = FifoAdmission(view)
        self.counts_anonymous = self._policy.counts_anonymous
        self.fault = ""
        self.on_fault: Callable[[], object] = lambda: None

    def _asked(self, method: str, *args: object) -> object:
        if not self.fault:
            right, expected = _ANSWERS.get(method, (None, ""))
            begun = perf_counter()
            try:
                answer: object = getattr(self._policy, method)(*args)
                took = perf_counter() - begun
                if took > _LONGEST_SECONDS:
                    self._fail(f"{method} takes {took:.1f} s, in which nobody is served")
                    return getattr(self._fifo, method)(*args)
                if isinstance(answer, Coroutine):
                    answer.close()
                    expected = "no coroutine: policies are not awaited"
                elif right is None or right(self.view, answer, *args):
                    return answer
                self._fail(f"{method} answers {answer!r:.{_SHOWN}}, expected is {expected}")
            except (Exception, SystemExit) as error:
                if method == "validate" and isinstance(error, PermitTooLargeError):
                    raise
                self._fail(f"{method} raises {_told(error)}", error)
        return getattr(self._fifo, method)(*args)

    def _fail(self, fault: str, error: BaseException | None = None) -> None:
        self.fault = fault
        logger.error(
            "The admission policy %s has failed, policy fifo takes its place: %s",
            self._name,
            fault,
            exc_info=error,
        )
        if self.view.waiting:
            self.view.clock.call_at(self.view.clock.now(), self.on_fault)


def _told(error: BaseException) -> str:
    """Return an error in words, with the last line of the policy's code on its way, if any."""
    text = " ".join("".join(format_exception_only(error)).split())[:_SHOWN]
    frames = extract_tb(error.__traceback__)
    own = [each for each in frames if not Path(each.filename).is_relative_to(_LIMITER)]
    # A function that the policy calls, such as one of the standard library, may raise the error.
    last = next((each for each in reversed(own) if each.filename == own[0].filename), frames[-1])
    return f"{text} ({Path(last.filename).name}, line {last.lineno})"


for _method in (name for name, one in vars(Admission).items() if callable(one)):
    if not _method.startswith("_"):
        # Every method by loop, so that a method added later is guarded as well.
        setattr(GuardedAdmission, _method, partialmethod(GuardedAdmission._asked, _method))
