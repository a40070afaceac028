"""The advice: obstacles first, then a search in virtual time, then the neighbours of each key."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadgen.advice.bounds import derived, guess, least_limits, widest
from loadgen.advice.findings import KeyFinding, findings, told
from loadgen.advice.goal import misses
from loadgen.advice.limits import Limits, Setting
from loadgen.advice.obstacles import obstacles, switch_warnings
from loadgen.advice.search import (
    OutOfTimeError,
    Plan,
    Tries,
    memory_knobs,
    search,
    unsteady,
)
from loadgen.errors import UsageError
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.advice.goal import Goal, Outcome
    from loadgen.advice.workload import Workload
    from loadgen.cluster import Profile

_ONLY_THEY = 3
"""Reasons of refusals that are named."""


@dataclass(frozen=True)
class Request:
    """The question.

    Attributes:
        today: The limits of the operator's files, or as shipped.
        seconds: How long the search may take.
    """

    workload: Workload
    goal: Goal
    profile: Profile
    today: Setting
    seconds: float = 120.0

    @property
    def proxy(self) -> bool:
        """True if clients come through a proxy."""
        return self.today.proxy is not None


@dataclass(frozen=True)
class Confirmation:
    """A real storm: its setting, and what came of it."""

    setting: Setting
    outcome: Outcome
    met: bool


@dataclass(frozen=True)
class Advice:
    """The answer.

    Attributes:
        setting: The advised one; None: nothing helps.
        outcome: What came of it in virtual time.
        obstacles: Why nothing helps.
        today: What comes of the operator's present limits; None: not tried.
        tries: Tries in virtual time, and ``seconds`` that they took.
        complete: False if time ran out before the limits were at their smallest.
        quick: True if the limits were reckoned, and tried alone.
        notes: Where a larger limit was worse.
        not_confirmed: Why there was no real storm.
        confirmations: Real storms, in their order; the last one's setting is advised.
    """

    request: Request
    setting: Setting | None = None
    outcome: Outcome | None = None
    findings: tuple[KeyFinding, ...] = ()
    obstacles: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    today: Outcome | None = None
    tries: int = 0
    seconds: float = 0.0
    complete: bool = True
    quick: bool = False
    notes: tuple[str, ...] = ()
    not_confirmed: str = "--no-confirm"
    confirmations: tuple[Confirmation, ...] = ()

    @property
    def met(self) -> bool:
        """True if there is a setting that meets the goal, and no real storm says otherwise."""
        return self.setting is not None and all(each.met for each in self.confirmations[-1:])


def advise(
    request: Request,
    engine: Callable[[Setting], Outcome],
    on_try: Callable[[int, Setting, Outcome], None] = lambda _number, _setting, _outcome: None,
) -> Advice:
    """Search limits that meet the goal.

    Args:
        request: The question.
        engine: Returns what comes of a setting: virtual time, or anything else; it keeps the time.
        on_try: Told of each try.

    Raises:
        UsageError: There was no time for a single try.
    """
    begun = time.perf_counter()
    known = obstacles(request.workload, request.goal, request.profile, proxy=request.proxy)
    if known:
        return Advice(request, obstacles=tuple(known), warnings=_warnings(request, request.today))
    tries = Tries(engine, request.goal)
    tries.on_try = lambda setting, outcome: on_try(len(tries.done), setting, outcome)
    found = _searched(request, tries)
    return replace(found, tries=len(tries.done), seconds=time.perf_counter() - begun)


def _searched(request: Request, tries: Tries) -> Advice:
    workload, goal = request.workload, request.goal

    def derive(setting: Setting) -> Setting:
        first = request.profile == "floodgate"
        return derived(workload, setting, waits_for_direct_first=first)

    start = derive(_with_flow(request, widest(workload, goal, proxy=request.proxy)))
    try:
        if not tries.meets(start):
            return Advice(
                request,
                obstacles=(_even_the_widest(request, tries.outcome(start), start),),
                warnings=_warnings(request, request.today),
            )
    except OutOfTimeError:
        raise UsageError(_no_time(request)) from None
    plan = Plan(
        start,
        _with_flow(request, guess(workload, goal, proxy=request.proxy)),
        least_limits(workload.largest),
        derive,
    )
    found = search(tries, plan)
    setting = found.setting
    today = _today(request, tries)
    return Advice(
        request,
        setting,
        tries.outcome(setting),
        findings(tries, setting, workload, request.profile),
        warnings=_warnings(request, setting),
        today=today,
        complete=found.complete,
        notes=tuple(unsteady(tries, memory_knobs(setting))),
    )


def _with_flow(request: Request, setting: Setting) -> Setting:
    """Return a setting with the flow control that a profile is advised to have."""
    pause = request.profile == "floodgate"

    def of(limits: Limits) -> Limits:
        return replace(limits, pause=pause)

    proxy = of(setting.proxy) if setting.proxy else None
    return Setting(of(setting.broker), proxy)


def _today(request: Request, tries: Tries) -> Outcome | None:
    try:
        return tries.outcome(request.today)
    except OutOfTimeError:
        return None


def _warnings(request: Request, setting: Setting) -> tuple[str, ...]:
    asked = request.today.broker.pause
    return tuple(switch_warnings(request.workload, setting.broker, request.profile, asked=asked))


def _no_time(request: Request) -> str:
    return (
        f"a single storm of {plural(request.workload.clients, 'client')} in virtual time was cut "
        f"after {request.seconds:.0f} s, all that the search had: give it more --minutes, or fewer "
        "clients with --family"
    )


def _even_the_widest(request: Request, outcome: Outcome, setting: Setting) -> str:
    first = setting.of(setting.servers[0])
    reasons = sorted(outcome.reasons.items(), key=lambda each: -each[1])[:_ONLY_THEY]
    said = "; ".join(f"{count:,} x {reason}" for reason, count in reasons)
    assert misses(request.goal, outcome)
    return (
        f"Nothing helps: with all of the {request.goal.accounted_mb:,} MB ({first.heap_mb} of heap "
        f"and {first.direct_mb} of direct memory) the goal is {told(request.goal, outcome)}"
        f"{f' ({said})' if said else ''}. What it takes is fewer or smaller answers at once, "
        "starts that are spread, faster readers, or more time."
    )
