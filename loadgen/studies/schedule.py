"""The schedule of a document's requests, as far as it is known before a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadgen.plan.clients import start_moments
from loadgen.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from loadgen.documents.model import Document
    from loadgen.plan.clients import Namespace
    from loadgen.plan.group import Group

_BEAT_SECONDS = 0.1
"""Answers of one beat are under way together, however fast they are read."""
_ENTRY_BYTES, _HEAD_BYTES, _SMALL_ANSWER_BYTES = 2, 40, 100
"""Of an answer: each name's tag and length; its ids and hash; all of one that is no list."""
_BINS, _BLOCKS = 16, " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class GroupSchedule:
    """The requests of one group of clients, as far as they are known before the run.

    Attributes:
        starts: When requests are due, in ascending order, relative to the agreed start.
        answer_bytes: Of each answer, on the wire.
        reading_seconds: How long a client takes to read one.
        never_read: True if answers stay unread.
        later: True if clients ask again, at moments that only the run decides.
    """

    name: str
    clients: int
    connections: int
    starts: NDArray[np.float64]
    answer_bytes: int
    reading_seconds: float
    never_read: bool
    later: bool

    def rates(self, bins: int, until_seconds: float) -> list[float]:
        """Return how many start each second in so many equal parts of a time."""
        counts, _ = np.histogram(self.starts, bins, (0.0, until_seconds))
        return [float(count) * bins / until_seconds for count in counts]


def schedules(document: Document, namespaces: Sequence[Namespace]) -> Iterator[GroupSchedule]:
    """Yield the schedule of each group; ``namespaces`` are those of the run."""
    for number, group in enumerate(document.clients):
        starts = np.zeros(group.count)  # Whose turn comes later starts at the earliest with these.
        moments = start_moments(group, document.seed + number)
        starts[: len(moments)] = moments
        asked = namespaces[slice(*(group.namespaces or (None, None)))][: group.count]
        answer, rate = _answer_bytes(group, asked, document), group.read.rate
        yield GroupSchedule(
            group.name,
            group.count,
            group.count * group.connections_each,
            _repeated(group, np.sort(starts), document.phases.end),
            answer,
            answer / rate if rate else 0.0,
            group.read.never,
            later=bool(group.family),
        )


def _repeated(group: Group, starts: NDArray[np.float64], end: float) -> NDArray[np.float64]:
    """Return all moments at which a group's clients ask: of a library, the first of each."""
    every: float = getattr(group, "every", 0.0)
    if every:
        beats = np.arange(0.0, max(every, end), every)
        starts = np.sort((starts[:, None] + beats[None, :]).ravel())
        starts = starts[: max(1, int(np.searchsorted(starts, end)))]
    return np.repeat(starts, getattr(group, "pipelined", 1))


def _answer_bytes(group: Group, asked: Sequence[Namespace], document: Document) -> int:
    """Return the mean size of an answer; of a list that nobody knows, that of the usual one."""
    if not {"list", "watch"} & set(group.operations):
        delivered = group.operations[0] == "deliver"
        return int(getattr(group, "size", 0)) if delivered else _SMALL_ANSWER_BYTES
    usual, each = document.topics.per_namespace, document.topics.mean_name_bytes + _ENTRY_BYTES
    names = sum(usual if one.topics is None else one.topics for one in asked)
    return names * each // max(1, len(asked)) + _HEAD_BYTES


def most_at_once(groups: Sequence[GroupSchedule]) -> int:
    """Return the most bytes of answers that are under way at one moment."""
    moments, changes = [np.zeros(0, np.int64)], [np.zeros(0)]
    for group in groups:
        begun = np.floor(group.starts / _BEAT_SECONDS + 1e-6).astype(np.int64)
        moments.append(begun)
        changes.append(np.full(len(begun), float(group.answer_bytes)))
        if not group.never_read:
            moments.append(begun + max(1, math.ceil(group.reading_seconds / _BEAT_SECONDS)))
            changes.append(np.full(len(begun), -float(group.answer_bytes)))
    times, sizes = np.concatenate(moments), np.concatenate(changes)
    # What ends and begins at the same moment does not add up.
    return int(np.max(np.cumsum(sizes[np.lexsort((sizes, times))]), initial=0.0))


def last_start(groups: Sequence[GroupSchedule]) -> float:
    """Return the moment of the last request that is known before the run, at least a second."""
    return max(1.0, *(float(group.starts[-1]) for group in groups))


def schedule_table(groups: Sequence[GroupSchedule]) -> tuple[list[str], list[list[str]]]:
    """Return when requests of each group begin, with their rate over time as a tiny plot."""
    until = last_start(groups)
    span = f"starts, {format_seconds(until)}"
    rows = []
    for group in groups:
        rates, (first, last) = group.rates(_BINS, until), group.starts[[0, -1]]
        requests = f"{len(group.starts):,}{' +' * group.later}"
        most = f"{max(rates):,.1f}/s" if first < last else "all at once"
        moments = [format_seconds(first), format_seconds(last)]
        rows.append([group.name, f"{group.clients:,}", requests, *moments, plot(rates), most])
    return ["group", "clients", "requests", "first", "last", span, "at most"], rows


def plot(rates: Sequence[float]) -> str:
    """Draw rates as a line of blocks; what is more than nothing is seen."""
    most, steps = max(rates, default=0.0) or 1.0, len(_BLOCKS) - 1
    return "".join(_BLOCKS[max(1, round(rate / most * steps)) if rate else 0] for rate in rates)
