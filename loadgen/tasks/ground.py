"""The ground that tasks stand on: sockets and real time, or what takes their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limiter.clock import Clock, LoopClock
from loadgen.clients.connect import Connector
from loadgen.clients.context import RunTime

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.connect import Connects


@dataclass(frozen=True, slots=True)
class Ground:
    """Time and ways to a server.

    Attributes:
        clock: Arms timers.
        new_time: Makes the time of a run.
        new_connector: Makes what connects a task's clients.
    """

    clock: Clock
    new_time: Callable[[], RunTime]
    new_connector: Callable[[], Connects]


SOCKETS = Ground(LoopClock(), RunTime, Connector)
