"""What the clients of one task share: the scenario, the storm's time, counters and a buffer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from limiter.clock import Clock, LoopClock
from loadgen.clients.pacing import LARGEST_QUANTUM_BYTES
from loadgen.scenario import ListingScenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.answers import AnswerChecker
    from loadgen.clients.counters import StormCounters

ScenarioT = TypeVar("ScenarioT", bound=ListingScenario)


@dataclass(slots=True)
class StormTime:
    """Time relative to the agreed T0, on a clock that does not step.

    uvloop's own clock has steps of a millisecond; what is measured and paced here is not read
    from it.

    Attributes:
        monotonic: Reads the clock, in seconds.
        t0: What it reads at T0.
    """

    monotonic: Callable[[], float] = time.perf_counter
    t0: float = 0.0

    def agree(self, t0_epoch_seconds: float) -> None:
        """Take over T0 as agreed on the wall clock."""
        self.t0 = self.monotonic() + (t0_epoch_seconds - time.time())

    def seconds(self) -> float:
        """Return seconds since T0."""
        return self.monotonic() - self.t0


@dataclass(frozen=True, slots=True)
class StormContext(Generic[ScenarioT]):
    """What the clients of one task share.

    Attributes:
        scenario: The whole run.
        checker: Verifies answers.
        counters: What is shown while it runs.
        on_finished: Called once for each client that has nothing more to do.
        time: The storm's time.
        clock: Arms timers.
        scratch: What is read lands here first. One buffer serves all connections of a loop: a
            loop asks for it, fills it and hands it over without doing anything in between.
    """

    scenario: ScenarioT
    checker: AnswerChecker
    counters: StormCounters
    on_finished: Callable[[], None]
    time: StormTime = field(default_factory=StormTime)
    clock: Clock = field(default_factory=LoopClock)
    scratch: memoryview = field(
        default_factory=lambda: memoryview(bytearray(LARGEST_QUANTUM_BYTES)), repr=False
    )
