"""The state that the clients of one task share: time, ways to a server, rows, totals, a buffer."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limiter.clock import Clock, LoopClock
from loadgen.access import own_credentials
from loadgen.engine.answers import AnswerChecker
from loadgen.engine.connecting import Connector
from loadgen.engine.pacing import LARGEST_QUANTUM_BYTES
from loadgen.engine.rows import Rows
from loadgen.engine.totals import Totals
from loadgen.engine.unread import UnreadConnections

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.authentication.authentication import Authentication


@dataclass(slots=True)
class RunTime:
    """Seconds since the agreed start, on a clock that does not step.

    Not uvloop's own clock, which has steps of a millisecond.

    Attributes:
        monotonic: Reads the clock, in seconds.
        t0: The clock's reading at the agreed start.
        wall: Reads the wall clock, in seconds of the epoch.
    """

    monotonic: Callable[[], float] = time.perf_counter
    t0: float = 0.0
    wall: Callable[[], float] = time.time

    def agree(self, t0_epoch_seconds: float) -> None:
        """Take over the start as agreed on the wall clock."""
        self.t0 = self.monotonic() + (t0_epoch_seconds - self.wall())

    def seconds(self) -> float:
        """Return seconds since the agreed start."""
        return self.monotonic() - self.t0


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The state that the clients of one task share.

    Time and ways to a server are those of sockets, unless something takes their place: in virtual
    time, or a test.

    Attributes:
        service_url: ``pulsar://host:port`` of the broker or proxy.
        admin_url: The web port's, for behaviours that call REST; empty if no option names one.
        warm_up: What is due earlier is not counted in the totals, nor in figures.
        end: What is due then, or later, is not sent.
        authentication: Shown in CONNECT, and when a server asks again; None: nothing is.
        lags: How late each moment of the schedule came, by moment: the first of its clients counts.
        failures: Errors of this program in what clients do, which end the run.
        scratch: Bytes that are read land here first. One buffer serves all connections of a loop: a
            loop asks for it, fills it and hands it over without doing anything in between.
    """

    service_url: str
    connector: Connector = field(default_factory=Connector)
    time: RunTime = field(default_factory=RunTime)
    clock: Clock = field(default_factory=LoopClock)
    admin_url: str = ""
    warm_up: float = 0.0
    end: float = math.inf
    rows: Rows = field(default_factory=Rows, repr=False)
    totals: Totals = field(default_factory=Totals)
    lags: dict[float, float] = field(default_factory=dict, repr=False)
    failures: list[BaseException] = field(default_factory=list, repr=False)
    authentication: Authentication | None = field(default_factory=own_credentials)
    checker: AnswerChecker = field(default_factory=AnswerChecker)
    unread: UnreadConnections = field(default_factory=UnreadConnections)
    scratch: memoryview = field(
        default_factory=lambda: memoryview(bytearray(LARGEST_QUANTUM_BYTES)), repr=False
    )
