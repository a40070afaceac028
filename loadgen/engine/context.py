"""The state that the clients of a task share, such as its clock, connector, rows and totals."""

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
    """A monotonic clock of seconds since the run's agreed start, finer than a millisecond.

    uvloop's own clock has steps of a millisecond.

    Attributes:
        monotonic: Reads the clock, in seconds.
        t0: The clock's reading at the agreed start.
        wall: Reads the wall clock, in seconds of the epoch.
    """

    monotonic: Callable[[], float] = time.perf_counter
    t0: float = 0.0
    wall: Callable[[], float] = time.time

    def agree(self, t0_epoch_seconds: float) -> None:
        """Set the run's agreed start, passed as wall-clock time."""
        self.t0 = self.monotonic() + (t0_epoch_seconds - self.wall())

    def seconds(self) -> float:
        """Return the seconds since the run's agreed start."""
        return self.monotonic() - self.t0


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The state that the clients of one task share.

    Time and transport are those of sockets by default; virtual time and tests replace both.

    Attributes:
        service_url: ``pulsar://host:port`` of the broker or proxy.
        admin_url: URL of the web port, for behaviours that call REST; empty if not given.
        warm_up: Requests due earlier do not count in totals and figures.
        end: Requests due at this moment or later are not sent.
        authentication: Credentials for CONNECT and for challenges; None: no credentials.
        lags: Delay of the first client of each scheduled moment, in seconds, by moment.
        failures: Errors in this program's behaviours; a single one ends the run.
        scratch: Read buffer of all connections of an event loop. One is enough: a loop fills the
            buffer and hands it over within a single step.
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
