"""The two halves of an advice with their progress: the search in virtual time, the real storm."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from loadgen.advice.advice import advise
from loadgen.advice.bounds import expected
from loadgen.advice.confirm import confirm
from loadgen.advice.engine import engine_for
from loadgen.advice.goal import misses
from loadgen.advice.search import memory_knobs

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.advice.advice import Advice, Request
    from loadgen.advice.goal import Outcome
    from loadgen.advice.limits import Setting
    from loadgen.live.steps import StepDisplay

_QUICK_TRIES = 3


def searched(request: Request, steps: StepDisplay) -> Advice:
    """Search limits in virtual time, one line of progress."""
    clients = request.workload.clients
    with steps.step(f"Storms of {clients:,} clients in virtual time") as note:

        def on_try(number: int, setting: Setting, outcome: Outcome) -> None:
            first = setting.of(setting.servers[0])
            note(f"{number}: heap {first.heap_mb}, direct {first.direct_mb} MB: {outcome}")

        return advise(request, engine_for(request, request.seconds), on_try)


def quick_advice(request: Request) -> Advice:
    """Reckon limits, and try them alone in virtual time: an advice in the time of a few storms."""
    begun = time.perf_counter()
    reckoned = advise(request, lambda setting: expected(request.workload, request.goal, setting))
    setting, engine = reckoned.setting, engine_for(request)
    for tries in range(1, _QUICK_TRIES + 1):
        if setting is None:
            break
        outcome = engine(setting)
        seconds = time.perf_counter() - begun
        reckoned = replace(
            reckoned, setting=setting, outcome=outcome, tries=tries, seconds=seconds, quick=True
        )
        if not misses(request.goal, outcome) or seconds > request.seconds:
            break
        for knob in memory_knobs(setting):
            setting = knob.above(setting)
    return reckoned


def confirmed(advice: Advice, steps: StepDisplay, out: Path, seconds: float) -> Advice:
    """Run the advised limits in a real storm, in at most so many seconds."""
    clients = advice.request.workload.clients
    with steps.step(f"A real storm of {clients:,} clients with the advised limits") as note:
        return confirm(advice, out, seconds, note)
