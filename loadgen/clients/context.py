"""State that the clients of one task share: the scenario, the run's time, counters, a buffer."""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from limiter.clock import Clock, LoopClock
from loadgen.access import own_credentials
from loadgen.clients.answers import AnswerChecker
from loadgen.clients.pacing import LARGEST_QUANTUM_BYTES
from loadgen.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.authentication.authentication import Authentication
    from loadgen.clients.records import RequestCounters

ScenarioT = TypeVar("ScenarioT", bound=Scenario)


@dataclass(slots=True)
class RunTime:
    """Time relative to the agreed T0, on a clock that does not step.

    Not uvloop's own clock, which has steps of a millisecond.

    Attributes:
        monotonic: Reads the clock, in seconds.
        t0: The clock's reading at T0.
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
class ClientContext(Generic[ScenarioT]):
    """State that the clients of one task share.

    Attributes:
        on_finished: Called once for each client that has nothing more to do.
        authentication: Shown in CONNECT, and when a server asks again; None: nothing is.
        lags: How late each moment of the schedule came; clients of one moment are one.
        scratch: Bytes that are read land here first. One buffer serves all connections of a loop: a
            loop asks for it, fills it and hands it over without doing anything in between.
    """

    scenario: ScenarioT
    counters: RequestCounters
    on_finished: Callable[[], None]
    time: RunTime = field(default_factory=RunTime)
    clock: Clock = field(default_factory=LoopClock)
    lags: array[float] = field(default_factory=lambda: array("d"), repr=False)
    authentication: Authentication | None = field(default_factory=own_credentials)
    checker: AnswerChecker = field(init=False)
    scratch: memoryview = field(
        default_factory=lambda: memoryview(bytearray(LARGEST_QUANTUM_BYTES)), repr=False
    )

    def __post_init__(self) -> None:
        checker = AnswerChecker(filtered=self.scenario.pattern is not None)
        object.__setattr__(self, "checker", checker)
