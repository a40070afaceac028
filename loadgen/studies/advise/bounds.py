"""Bounds of the advised limits, computed before the first storm is run.

A limit is at least the largest single answer. Direct memory holds the bytes of readers times the
time of reading (Little's law for bytes). A queue holds the burst of requests. All waits on the way
of a request end before the client gives up.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from limiter.memory.size_estimate import FIRST_ESTIMATE_BYTES
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import WATCHING, reading_seconds
from loadgen.studies.advise.search import GROWTH, MORE_CLIENTS, larger, more_clients
from loadgen.units import MB_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadgen.studies.advise.question import NamespaceShape, Question

SERVED_PER_SECOND = 50.0
"""Answers of 1 MB per second that a first guess expects of a server, with any limits."""
SHORTEST_WAIT_MILLIS = 1_000
_MARGIN_SECONDS = 1.0
_QUEUE_AS_SHIPPED = 10_000


def least_limits(shapes: Iterable[NamespaceShape]) -> Least:
    """Return the smallest limits, in MB, with which each given namespace can be listed at all.

    The largest answer may be another namespace's than the largest list: long names have less
    overhead in the heap.
    """
    heap, direct = zip(*((each.charged_bytes, each.answer_bytes) for each in shapes), strict=True)
    return Least(_megabytes(max(heap)), _megabytes(max(direct)))


class Least(NamedTuple):
    """The smallest heap and direct limits, in MB, that can hold the largest answer alone."""

    heap_mb: int
    direct_mb: int


def safe_limits(question: Question) -> Least:
    """Return limits, in MB, with which no growth stall is possible, however slow the broker is.

    A request for a namespace of unknown size holds a first guess, and waits for the rest behind all
    other requests. If first guesses fill the heap, no request ever grows (scenario
    ``hold-and-wait``). So the heap has to hold the guesses of all requests in flight and the
    largest list. Direct memory has to hold two of the largest answers, or a single answer blocks
    all other requests.
    """
    harder = larger(more_clients(question, MORE_CLIENTS), GROWTH)
    under_way = min(harder.clients, question.lookups)
    first = min(FIRST_ESTIMATE_BYTES, harder.largest.charged_bytes)
    heap_bytes = under_way * first + harder.largest.charged_bytes
    largest_answer = max(each.answer_bytes for each in harder.listed)
    return Least(_megabytes(heap_bytes), _megabytes(2 * largest_answer))


def start(question: Question) -> Setting:
    """Return the limits with which the search for advised limits begins.

    With them there is no growth stall, and direct memory holds the answers of slow readers.
    """
    safe, budget = safe_limits(question), question.goal.accounted_mb
    heap_mb = max(1, min(safe.heap_mb, budget - least_limits(question.listed).direct_mb))
    direct_mb = min(max(safe.direct_mb, _pinned_mb(question)), budget - heap_mb)
    found = _setting(question, heap_mb, direct_mb)
    if question.proxy:  # The broker's reader is the proxy, which is fast.
        direct_mb = min(safe.direct_mb, budget - heap_mb)
        found = replace(found, broker=replace(found.broker, direct_mb=max(1, direct_mb)))
    return found


def room_for_grants(question: Question, setting: Setting) -> Setting:
    """Return a setting with direct memory for all answers that a real broker makes in a row.

    The one thread that grants a real broker's permits also matches the pattern and makes the answer
    of each list that waited for heap. Direct memory is granted only after all lists that fit the
    heap. If this takes longer than requests may wait for direct memory, all answers that do not fit
    are refused together (seen: 19 of 552 clients, 48 MB of heap, 3 MB of direct memory).
    """
    mean, times, broker = question.mean, question.times, setting.broker
    lists = min(question.clients, broker.heap_mb * MB_BYTES / max(1, mean.charged_bytes))
    each = (times.match_name + times.answer_name) * mean.name_bytes / 100
    if times.band * lists * each * 1000 <= broker.direct_timeout_millis:
        return setting
    most = question.goal.accounted_mb - broker.heap_mb
    direct_mb = max(broker.direct_mb, min(_megabytes(lists * mean.answer_bytes), most))
    return replace(setting, broker=replace(broker, direct_mb=direct_mb))


def splits(question: Question) -> list[Setting]:
    """Return several settings of limits, each of which uses all memory that the goal allows.

    They divide the memory differently between heap and direct memory.
    """
    budget, least = question.goal.accounted_mb, least_limits(question.listed)
    shares = (budget // 4, budget // 2, budget // 8, 3 * budget // 4)
    most = max(1, budget - least.direct_mb)
    heaps = dict.fromkeys(min(max(heap_mb, least.heap_mb), most) for heap_mb in shares)
    return [_setting(question, heap_mb, budget - heap_mb) for heap_mb in heaps]


def least_setting(question: Question) -> Setting:
    """Return each server's smallest limits with which the largest namespace can be listed."""
    return _setting(question, *least_limits(question.listed))


def needed_queue(clients: int) -> int:
    """Return the length of a queue for requests of all clients, rounded up to thousands.

    The result is at least the default length.
    """
    return max(_QUEUE_AS_SHIPPED, -(-clients // 1_000) * 1_000)


def _pinned_mb(question: Question) -> int:
    """Return the direct memory, in MB, that answers occupy while slow clients read them.

    All readers start together, so their memory is free again at the same time: whole rounds of
    readers fit into the goal's time, less the servers' own time. Answers to readers that never read
    stay in memory.
    """
    goal, answer, direct = question.goal, question.mean.answer_bytes, 0
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
    return _megabytes(direct)


def _setting(question: Question, heap_mb: int, direct_mb: int) -> Setting:
    """Return given limits for each server, with timeouts that are shorter than the clients' own."""
    flow, queue = question.profile == "floodgate", needed_queue(question.clients)
    reading = reading_seconds(question.usual.read, question.largest.answer_bytes)
    total = max(0.0, question.usual.timeout - reading - _MARGIN_SECONDS)
    # Floodgate's profile waits for direct memory first, and holds no heap meanwhile. Clients that
    # read immediately hold direct memory for milliseconds: almost all of the wait is for heap.
    for_direct = 2 / 3 if flow else 1 / 2 if reading else 1 / 10

    def limits(share: float, today: Limits) -> Limits:
        """Return the limits of a server whose waits may take ``share`` of the clients' timeout."""
        return replace(
            today,
            heap_mb=max(1, heap_mb),
            direct_mb=max(1, direct_mb),
            heap_timeout_millis=_millis((1 - for_direct) * share * total),
            direct_timeout_millis=_millis(for_direct * share * total),
            heap_queue=queue,
            direct_queue=queue,
            pause=flow,
        )

    # Requests wait at the proxy, which holds them while the broker answers, and the proxy admits
    # fewer requests than the broker takes.
    broker, proxy = question.today.broker, question.today.proxy
    if proxy is not None and question.proxy:
        return Setting(limits(1 / 3, broker), limits(2 / 3, proxy))
    return Setting(limits(1.0, broker))


def _millis(seconds: float) -> int:
    return max(SHORTEST_WAIT_MILLIS, int(seconds * 10) * 100)


def _megabytes(size_bytes: float) -> int:
    return max(1, math.ceil(size_bytes / MB_BYTES))
