"""Events of a run's own servers while clients are there: restarts at agreed moments."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadgen.clients.records import Outcome
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.clients.records import TaskReport
    from loadgen.cluster import ServerEvent


class ServerEvents:
    """The events of one run, carried out by a thread within a block.

    Mutable state: what has happened.

    Args:
        events: In any order.
        restart: Kills a server of this run and starts it again, by its role.
    """

    def __init__(self, events: Sequence[ServerEvent], restart: Callable[[str], object]) -> None:
        self._events = sorted(events, key=lambda event: event.at_seconds)
        self._restart = restart
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._happened: list[dict[str, Any]] = []
        self._failure: LoadgenError | None = None

    def agreed(self, t0_epoch_seconds: float) -> None:
        """Learn when the run begins, as often as somebody says so."""
        if self._thread is None and self._events:
            self._thread = threading.Thread(
                target=self._carry_out, args=(t0_epoch_seconds,), name="events", daemon=True
            )
            self._thread.start()

    def __enter__(self) -> ServerEvents:
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def happened(self, *, interrupted: bool) -> list[dict[str, Any]]:
        """Return what happened and when, in seconds after T0; behind the block.

        Args:
            interrupted: Whether the run ended early: then later events are none.

        Raises:
            LoadgenError: A server did not come up again, or the run was over before an event.
        """
        if self._failure is not None:
            raise self._failure
        if len(self._happened) < len(self._events) and not interrupted:
            event = self._events[len(self._happened)]
            raise LoadgenError(
                f"the run was over before the {event.restart} was to be restarted "
                f"(at_seconds {event.at_seconds:g}): make it longer, or the event earlier"
            )
        return self._happened

    def _carry_out(self, t0_epoch_seconds: float) -> None:
        for event in self._events:
            if self._over.wait(max(0.0, t0_epoch_seconds + event.at_seconds - time.time())):
                return
            begun = time.time()
            try:
                self._restart(event.restart)
            except LoadgenError as error:
                self._failure = error
                return
            self._happened.append(
                {
                    "restart": event.restart,
                    "at_seconds": begun - t0_epoch_seconds,
                    "ready_seconds": time.time() - t0_epoch_seconds,
                }
            )


def again_seconds(reports: Sequence[TaskReport], moment: float) -> float | None:
    """Return how long after a moment every client had had an answer to something asked since.

    None if a client had none to the end, or none had asked before.

    Args:
        reports: Of all tasks.
        moment: In seconds after T0.
    """
    rows = pa.concat_tables([report.rows for report in reports])
    before = rows.filter(pc.less(rows["started_seconds"], moment))
    since = rows.filter(pc.greater_equal(rows["started_seconds"], moment))
    answered = since.filter(pc.equal(since["outcome"], Outcome.ANSWERED.value))
    first = answered.group_by("client").aggregate([("finished_seconds", "min")])
    missing = set(before["client"].to_pylist()) - set(first["client"].to_pylist())
    if missing or not first.num_rows:
        return None
    return float(pc.max(first["finished_seconds_min"]).as_py()) - moment
