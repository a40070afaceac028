"""Bounds of the keys, which hold before anything is tried.

A limit is at least the largest single answer; direct memory that answers pin is what readers take
times how long (Little's law for bytes); a queue takes the burst; and all waits on the way of one
request end before its client gives up.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import WATCHING, reading_seconds
from loadgen.units import MB_BYTES

if TYPE_CHECKING:
    from loadgen.studies.advise.question import NamespaceShape, Question

SERVED_PER_SECOND = 50.0
"""Answers of 1 MB that a first guess expects of a server: no limit has anything to do with it."""
SHORTEST_WAIT_MILLIS = 1_000
_MARGIN_SECONDS = 1.0
_QUEUE_AS_SHIPPED = 10_000
_HEAP_PART = 4
"""A quarter of what may be accounted is heap, at first."""


class Least(NamedTuple):
    """The smallest limits, in MB, that hold the largest answer at all."""

    heap_mb: int
    direct_mb: int


def least_limits(shape: NamespaceShape) -> Least:
    """Return the limits below which a namespace is never listed."""
    return Least(_megabytes(shape.charged_bytes), _megabytes(shape.answer_bytes))


def derived(question: Question, setting: Setting) -> Setting:
    """Return a setting with the timeouts and queues that follow from its limits."""
    reading = reading_seconds(question.usual.read, question.largest.answer_bytes)
    total = max(0.0, question.usual.timeout - reading - _MARGIN_SECONDS)
    # The proxy is where requests wait: it holds them while the broker answers, and what it lets
    # through is less than the broker takes.
    shares = {"broker": 1.0} if setting.proxy is None else {"proxy": 2 / 3, "broker": 1 / 3}
    queue = needed_queue(question.clients)
    for server in setting.servers:
        limits, seconds = setting.of(server), shares[server] * total
        # Floodgate's profile holds no heap while direct memory is waited for.
        flow = question.profile == "floodgate"
        direct = seconds * 2 / 3 if flow else _direct_wait_seconds(question, limits, seconds)
        limits = replace(
            limits,
            heap_timeout_millis=_millis(seconds - direct),
            direct_timeout_millis=_millis(direct),
            heap_queue=queue,
            direct_queue=queue,
        )
        setting = replace(setting, **{server: limits})
    return setting


def _direct_wait_seconds(question: Question, limits: Limits, seconds: float) -> float:
    """Return how long to wait for direct memory, of so many seconds for heap and it together.

    Only requests that hold heap wait for it, so twice their turns is plenty; the rest of the time
    is for the queue before the heap.
    """
    mean = question.mean
    holders = limits.heap_mb * MB_BYTES // max(1, mean.charged_bytes)
    places = max(1, limits.direct_mb * MB_BYTES // max(1, mean.answer_bytes))
    turns = math.ceil((min(holders, question.clients) + 1) / places)
    held = question.held_seconds(question.usual.read, mean.answer_bytes)
    wanted = _MARGIN_SECONDS + 2 * turns * (held + 1 / SERVED_PER_SECOND)
    return min(max(wanted, seconds / 4), seconds / 2)


def needed_queue(clients: int) -> int:
    """Return places for the whole burst, in thousands; at least what is shipped."""
    return max(_QUEUE_AS_SHIPPED, -(-clients // 1_000) * 1_000)


def guess(question: Question) -> Setting:
    """Return limits near those that are needed, at least the least and within the budget.

    All start together, so their places are free again together: whole rounds of readers pass within
    the goal's time, what servers need for themselves apart. Those that never read stay.
    """
    goal, answer = question.goal, question.mean.answer_bytes
    least, direct = least_limits(question.largest), 0
    # A watch is answered with a list, too.
    lists = {g.name: g.count * (2 if g.family in WATCHING else 1) for g in question.groups}
    served = sum(lists.values()) * answer / MB_BYTES / SERVED_PER_SECOND
    for group in question.groups:
        held = question.held_seconds(group.read, answer)
        if held >= goal.back_within_seconds:
            direct += group.count * answer
        elif held:
            reading = reading_seconds(group.read, answer) - held
            rounds = max(1.0, (goal.back_within_seconds - served - reading) // held)
            direct += math.ceil(lists[group.name] / rounds) * answer
    direct_mb = min(max(_megabytes(direct), least.direct_mb), goal.accounted_mb - least.heap_mb)
    heap_mb = max(least.heap_mb, _megabytes(question.first_estimates_bytes))
    found = _setting(question, min(heap_mb, goal.accounted_mb - 1), direct_mb)
    if question.proxy:  # the broker's reader, which is fast
        found = replace(found, broker=replace(found.broker, direct_mb=max(1, least.direct_mb)))
    return derived(question, found)


def widest(question: Question) -> Setting:
    """Return the largest limits that the goal allows: most of it where answers wait for readers."""
    budget, least = question.goal.accounted_mb, least_limits(question.largest)
    needed = _megabytes(question.first_estimates_bytes + question.largest.charged_bytes)
    heap_mb = max(least.heap_mb, needed, budget // _HEAP_PART)
    heap_mb = min(heap_mb, budget - least.direct_mb)
    return derived(question, _setting(question, heap_mb, budget - heap_mb))


def _setting(question: Question, heap_mb: int, direct_mb: int) -> Setting:
    pause = question.profile == "floodgate"
    limits = Limits(heap_mb=max(1, heap_mb), direct_mb=max(1, direct_mb), pause=pause)
    return Setting(limits, limits if question.proxy else None)


def _millis(seconds: float) -> int:
    return max(SHORTEST_WAIT_MILLIS, int(seconds * 10) * 100)


def _megabytes(size_bytes: float) -> int:
    return max(1, math.ceil(size_bytes / MB_BYTES))
