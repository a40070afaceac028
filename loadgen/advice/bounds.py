"""Bounds that hold before anything is tried: what no setting can undercut, and a first guess.

A limit is at least the largest single answer; direct memory that answers pin is what readers take
times how long (Little's law for bytes); a queue takes the burst; and all waits on the way of one
request end before its client gives up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadgen.advice.goal import Outcome
from loadgen.advice.limits import Limits, Setting
from loadgen.units import MB_BYTES
from proto.frames import FRAME_PADDING_BYTES

if TYPE_CHECKING:
    from loadgen.advice.goal import Goal
    from loadgen.advice.workload import NamespaceShape, Workload

SERVED_PER_SECOND = 50.0
"""Answers of 1 MB that a first guess expects of a server: no limit has anything to do with it."""
SHORTEST_WAIT_MILLIS = 1_000
_MARGIN_SECONDS = 1.0
_QUEUE_AS_SHIPPED = 10_000
_HEAP_PART = 4
"""A quarter of what may be accounted is heap, at first."""


@dataclass(frozen=True)
class Least:
    """The smallest limits, in MB, that hold the largest answer at all."""

    heap_mb: int
    direct_mb: int

    def of(self, name: str) -> int:
        """Return the least value of a field of :class:`Limits`."""
        return self.heap_mb if name == "heap_mb" else self.direct_mb


def least_limits(shape: NamespaceShape) -> Least:
    """Return the limits below which a namespace is never listed."""
    return Least(_megabytes(shape.charged_bytes), _megabytes(shape.answer_bytes))


def frame_limit_bytes(workload: Workload) -> int:
    """Return the size that an answer may have; a peer closes the connection on a larger one."""
    return workload.max_message_bytes + FRAME_PADDING_BYTES


def derived(workload: Workload, setting: Setting, *, waits_for_direct_first: bool) -> Setting:
    """Return a setting with the timeouts and queues that follow from its limits.

    Args:
        workload: The load.
        setting: Its limits count.
        waits_for_direct_first: Profile ``floodgate``: no heap is held while direct memory is
            waited for.
    """
    total = _waiting_seconds(workload)
    # The proxy is where requests wait: it holds them while the broker answers, and what it lets
    # through is less than the broker takes.
    shares = {"broker": 1.0} if setting.proxy is None else {"proxy": 2 / 3, "broker": 1 / 3}
    found = setting
    for server in setting.servers:
        limits = _derived_of(
            workload,
            setting.of(server),
            shares[server] * total,
            waits_for_direct_first=waits_for_direct_first,
        )
        found = replace(found, **{server: limits})
    return found


def _derived_of(
    workload: Workload, limits: Limits, seconds: float, *, waits_for_direct_first: bool
) -> Limits:
    direct = _direct_wait_seconds(workload, limits, seconds)
    if waits_for_direct_first:
        direct = seconds * 2 / 3
    queue = needed_queue(workload)
    return replace(
        limits,
        heap_timeout_millis=_millis(seconds - direct),
        direct_timeout_millis=_millis(direct),
        heap_queue=queue,
        direct_queue=queue,
    )


def _direct_wait_seconds(workload: Workload, limits: Limits, seconds: float) -> float:
    """Return how long to wait for direct memory, of so many seconds for heap and it together.

    Only requests that hold heap wait for it, so twice their turns is plenty; the rest of the time
    is for the queue before the heap.
    """
    mean = workload.mean
    holders = limits.heap_mb * MB_BYTES // max(1, mean.charged_bytes)
    places = max(1, limits.direct_mb * MB_BYTES // max(1, mean.answer_bytes))
    turns = math.ceil((min(holders, workload.clients) + 1) / places)
    held = workload.readers.held_seconds(mean.answer_bytes)
    wanted = _MARGIN_SECONDS + 2 * turns * (held + 1 / SERVED_PER_SECOND)
    return min(max(wanted, seconds / 4), seconds / 2)


def needed_queue(workload: Workload) -> int:
    """Return places for the whole burst, rounded up to two digits; at least what is shipped."""
    burst = workload.clients
    if burst <= _QUEUE_AS_SHIPPED:
        return _QUEUE_AS_SHIPPED
    unit = 10 ** (len(str(burst)) - 2)
    return int(-(-burst // unit) * unit)


def guess(workload: Workload, goal: Goal, *, proxy: bool) -> Setting:
    """Return the limits that Little's law asks for, at least the least and within the budget."""
    least = least_limits(workload.largest)
    answer = workload.mean.answer_bytes
    readers = workload.readers
    slow = workload.slow_clients
    # Those that read pass through within the goal's time; those that never read stay.
    pinned_seconds = (workload.answers - slow) * readers.held_seconds(answer)
    direct = answer * pinned_seconds / goal.back_within_seconds
    if slow:
        held = min(readers.held_seconds(answer, slow=True), goal.back_within_seconds)
        direct += slow * answer * held / goal.back_within_seconds
    direct_mb = min(max(_megabytes(direct), least.direct_mb), goal.accounted_mb - least.heap_mb)
    heap_mb = max(least.heap_mb, _megabytes(workload.first_estimates_bytes))
    limits = Limits(heap_mb=min(heap_mb, goal.accounted_mb - 1), direct_mb=max(1, direct_mb))
    return Setting(limits, limits if proxy else None)


def widest(workload: Workload, goal: Goal, *, proxy: bool) -> Setting:
    """Return the largest limits that the goal allows: most of it where answers wait for readers."""
    least = least_limits(workload.largest)
    heap_mb = max(
        least.heap_mb,
        _megabytes(workload.first_estimates_bytes + workload.largest.charged_bytes),
        goal.accounted_mb // _HEAP_PART,
    )
    heap_mb = min(heap_mb, goal.accounted_mb - least.direct_mb)
    limits = Limits(heap_mb=max(1, heap_mb), direct_mb=max(1, goal.accounted_mb - heap_mb))
    return Setting(limits, limits if proxy else None)


def expected(workload: Workload, goal: Goal, setting: Setting) -> Outcome:
    """Reckon an outcome without any simulation: the analytic model, monotone in every limit."""
    least = least_limits(workload.largest)
    mean = workload.mean
    seconds = workload.answers * mean.answer_bytes / MB_BYTES / SERVED_PER_SECOND
    first = setting.of(setting.servers[0])  # behind a proxy the broker's reader is fast
    places = first.direct_mb * MB_BYTES // max(1, mean.answer_bytes)
    held = workload.readers.held_seconds(mean.answer_bytes)
    # All start together, so places are free again together: whole rounds.
    seconds += math.ceil(workload.answers / max(1, places)) * held
    seconds += workload.readers.seconds(mean.answer_bytes) - held
    fits = all(
        setting.of(server).heap_mb >= least.heap_mb
        and setting.of(server).direct_mb >= least.direct_mb
        for server in setting.servers
    )
    slow_late = (
        workload.readers.seconds(mean.answer_bytes, slow=True) > goal.back_within_seconds
        and workload.slow_clients
    )
    if not fits:
        return Outcome(workload.clients, 0, None, workload.answers, workload.answers)
    share = min(1.0, goal.back_within_seconds / seconds) if seconds else 1.0
    back = int((workload.clients - int(slow_late or 0)) * share)
    refused = workload.answers - int(workload.answers * share)
    return Outcome(workload.clients, back, seconds, workload.answers, refused)


def _waiting_seconds(workload: Workload) -> float:
    """Return how long a request may wait in all, before its client has given up."""
    reading = workload.readers.seconds(workload.largest.answer_bytes)
    return max(0.0, workload.operation_timeout_seconds - reading - _MARGIN_SECONDS)


def _millis(seconds: float) -> int:
    return max(SHORTEST_WAIT_MILLIS, int(seconds * 10) * 100)


def _megabytes(size_bytes: float) -> int:
    return max(1, math.ceil(size_bytes / MB_BYTES))
