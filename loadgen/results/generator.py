"""The one rule that says when the generator, and not the server, was the limit of a run.

Each limit has its sentence; one is enough to make the figures worthless (exit code 98). What a
server can cause, such as connections that it closes, counts for none of them.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadgen.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.clients.records import TaskFacts

# Later than this and the load was not the one that the scenario describes: a task, and the last of
# the clients that it starts at one moment.
START_ERROR_LIMIT_SECONDS = 0.05
CLIENT_START_ERROR_LIMIT_SECONDS = 0.25
# Of moments that are spread over time; of fewer than a hundred the 99th percentile would be the
# latest, for which the limits above are there.
LAG_P99_LIMIT_SECONDS = 0.01
FEWEST_MOMENTS = 100
STARTED_SHARE_LIMIT = 0.95
# The end of an answer is noticed so much too late.
LOOP_LAG_P99_LIMIT_SECONDS = 0.25
# A task has one event loop, which one core serves. Of shorter runs the share says nothing.
CPU_SHARE_LIMIT = 0.95
SHORTEST_CPU_SECONDS = 2.0

_OWN_FAILURES = tuple(
    os.strerror(number)
    for number in (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM)
)
"""Why this machine, not the server, made no connection."""


def generator_document(
    rows: pa.Table, facts: Sequence[TaskFacts], planned: int | None = None
) -> dict[str, Any]:
    """Return the summary's fields on the generator.

    Args:
        rows: The requests of all tasks.
        facts: One of each task.
        planned: Requests that the schedule holds, where that is known before the run.
    """
    lags = [each.lag_p99_seconds for each in facts if each.moments >= FEWEST_MOMENTS]
    shares = [_cpu_share(each) for each in facts]
    complete = not any(each.interrupted for each in facts)
    document = {
        "start_error_seconds_max": max(each.start_error_seconds for each in facts),
        "client_start_error_seconds_max": max(each.client_start_error_seconds for each in facts),
        "lag_p99_seconds": max(lags, default=None),
        "loop_lag_p99_seconds": max(each.loop_lag_p99_seconds for each in facts),
        "loop_lag_max_seconds": max(each.loop_lag_max_seconds for each in facts),
        "started_share": _started_share(rows, planned if complete else None),
        "cpu_share_max": max((each for each in shares if each is not None), default=None),
        "descriptors_max": max(each.descriptors for each in facts),
    }
    limits = list(_limits(document))
    return {
        "start_error_seconds_max": document.pop("start_error_seconds_max"),
        "client_start_error_seconds_max": document.pop("client_start_error_seconds_max"),
        "generator": document,
        "generator_limited": bool(limits),
        "generator_limits": limits,
    }


def _cpu_share(facts: TaskFacts) -> float | None:
    if facts.measured_seconds < SHORTEST_CPU_SECONDS:
        return None
    return round(facts.cpu_seconds / facts.measured_seconds, 3)


def _started_share(rows: pa.Table, planned: int | None) -> float:
    """Return the share of planned requests that this machine did not fail to start."""
    wanted = max(planned or 0, rows.num_rows)
    if not wanted:
        return 1.0
    own: int = pc.sum(pc.is_in(rows["reason"], pa.array(_OWN_FAILURES))).as_py() or 0
    share: float = round((rows.num_rows - own) / wanted, 4)
    return share


def _limits(document: dict[str, Any]) -> Iterator[str]:
    late, last = document["start_error_seconds_max"], document["client_start_error_seconds_max"]
    if late > START_ERROR_LIMIT_SECONDS:
        yield _late("a task began", late, START_ERROR_LIMIT_SECONDS)
    elif last > CLIENT_START_ERROR_LIMIT_SECONDS:
        yield _late("a task sent its last request", last, CLIENT_START_ERROR_LIMIT_SECONDS)
    lag, loop_lag = document["lag_p99_seconds"], document["loop_lag_p99_seconds"]
    if lag is not None and lag > LAG_P99_LIMIT_SECONDS:
        yield _late("1 % of its moments came", lag, LAG_P99_LIMIT_SECONDS)
    if document["started_share"] < STARTED_SHARE_LIMIT:
        yield (
            f"only {document['started_share']:.1%} of the planned requests could be started, of at "
            f"least {STARTED_SHARE_LIMIT:.0%}"
        )
    if loop_lag > LOOP_LAG_P99_LIMIT_SECONDS:
        yield _late("its event loop was", loop_lag, LOOP_LAG_P99_LIMIT_SECONDS)
    share = document["cpu_share_max"]
    if share is not None and share > CPU_SHARE_LIMIT:
        yield f"a task used {share:.0%} of a core, of at most {CPU_SHARE_LIMIT:.0%}"


def _late(what: str, seconds: float, limit: float) -> str:
    return f"{what} {format_seconds(seconds)} late, over the limit of {format_seconds(limit)}"
