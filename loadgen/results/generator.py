"""The one rule that says when the generator, and not the server, was the limit of a run.

Each limit has its words; one is enough to make the figures worthless (exit code 98). What a server
can cause, such as connections that it closes, counts for none of them.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from loadgen.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.results.results import Results

# Of fewer than a hundred the 99th percentile would be the latest, which has limits of its own.
FEWEST_MOMENTS = 100
STARTED_SHARE_LIMIT = 0.95
# A task has one event loop, which one core serves. Of shorter runs the share says nothing.
CPU_SHARE_LIMIT = 0.95
SHORTEST_CPU_SECONDS = 2.0
_OWN_FAILURES = tuple(
    os.strerror(number)
    for number in (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM)
)
"""Why this machine, not the server, made no connection."""


def generator_figures(results: Results) -> dict[str, float | None]:
    """Return the worst of what its tasks tell of themselves, by the names that summary.json has."""
    tasks = results.run.get("tasks") or []
    lags = [t["lag_p99_seconds"] for t in tasks if t["moments"] >= FEWEST_MOMENTS]
    shares = [
        t["cpu_seconds"] / t["measured_seconds"]
        for t in tasks
        if t["measured_seconds"] >= SHORTEST_CPU_SECONDS
    ]
    reasons = ", ".join(f"'{reason}'" for reason in _OWN_FAILURES)
    started = f"CASE WHEN reason IN ({reasons}) THEN 0E0 ELSE 1E0 END"
    worst = (
        "start_error_seconds", "client_start_error_seconds", "loop_lag_p99_seconds",
        "loop_lag_max_seconds", "descriptors",
    )  # fmt: skip
    return {
        **{name: max((t.get(name, 0) for t in tasks), default=None) for name in worst},
        "lag_p99_seconds": max(lags, default=None),
        "cpu_share": max(shares, default=None),
        "started_share": results.value(f"SELECT avg({started}) FROM requests"),
    }


_LATE = (
    # Later than this and the load was not the one that the document describes: a task, and the last
    # of the clients that it starts at one moment.
    ("start_error_seconds", 0.05, "a task began"),
    ("client_start_error_seconds", 0.25, "a client's first request was"),
    # Of moments that are spread over time.
    ("lag_p99_seconds", 0.01, "1 % of a task's moments came"),
    # The end of an answer is noticed so much too late: of one in a hundred, and of any.
    ("loop_lag_p99_seconds", 0.25, "1 % of the time its event loop was"),
    ("loop_lag_max_seconds", 1.0, "once its event loop was"),
)
"""Figures with their limits in seconds, and what came so late."""


def generator_limits(found: Mapping[str, float | None]) -> list[str]:
    """Return why the generator was the limit, by its figures; nothing if it was not."""
    limits = [
        f"{what} {format_seconds(value)} late, over the limit of {format_seconds(limit)}"
        for name, limit, what in _LATE
        if (value := found[name]) is not None and value > limit
    ]
    started, busy = found["started_share"], found["cpu_share"]
    if started is not None and started < STARTED_SHARE_LIMIT:
        limits.append(
            f"only {started:.1%} of the requests could be started, of at least "
            f"{STARTED_SHARE_LIMIT:.0%}"
        )
    if busy is not None and busy > CPU_SHARE_LIMIT:
        limits.append(f"a task used {busy:.0%} of a core, of at most {CPU_SHARE_LIMIT:.0%}")
    return limits
