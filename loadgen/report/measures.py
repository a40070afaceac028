"""The figures that a report charts over time, each in words an operator knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.results.summary import AccountedMemory, ProcessMemory, RunSummary


@dataclass(frozen=True)
class Measure:
    """One scraped figure that gets a row of charts.

    Attributes:
        metric: Its name of the servers' vocabulary.
        peak: The server's own peak, exact where a scrape only samples; None: nobody knows it.
        limit: The limit it is held against in a process of a run; None: it has none.
        rate: True for a total that grows: its growth a second is shown.
        base: What is taken off each value (resident memory when idle); None: the first one.
        accounted: False when the process does not count this at all.
        nothing: What is said instead of charts when it was 0 all the time.
    """

    key: str
    metric: str
    unit: str
    title: str
    meaning: str
    peak: Callable[[ProcessMemory], float | None] = lambda _: None
    limit: Callable[[RunSummary, str], float | None] = lambda run, process: None
    rate: bool = False
    base: Callable[[ProcessMemory], float | None] = lambda _: 0.0
    accounted: Callable[[ProcessMemory], bool] = lambda _: True
    nothing: str = "Nothing, at any time, in any run."


def _limit_of(memory: AccountedMemory | None) -> float | None:
    return None if memory is None else memory.limit_bytes


def _near_limit_of_descriptors(run: RunSummary, process: str) -> float | None:
    """Return the limit of open files; None where it is so far that it would flatten the curve."""
    found = run.processes[process]
    limit, peak = found.descriptors_limit, found.descriptors_peak
    return limit if limit is not None and peak is not None and limit < _FAR * peak else None


_FAR = 4
MEASURES = (
    Measure(
        "pending",
        "unread",
        "bytes",
        "Answers written but not yet read",
        "Bytes handed to connections that slow clients have not taken yet. Connections that share "
        "one copy of an answer each count it, so with shared answers this is more than the memory.",
        peak=lambda process: process.outbound_pending_peak_bytes,
        limit=lambda run, process: run.paused_at_bytes(process),
    ),
    Measure(
        "resident",
        "resident",
        "bytes",
        "Resident memory over idle",
        "What the operating system counts for the process, less what it had before the run. "
        "This is what a container limit kills.",
        peak=lambda process: process.resident_over_idle_bytes,
        base=lambda process: process.resident_idle_bytes,
    ),
    Measure(
        "direct",
        "direct.used",
        "bytes",
        "Accounted direct memory",
        "What topic listings hold for encoded answers, until the last byte is with the kernel.",
        peak=lambda process: process.direct.high_water_bytes if process.direct else None,
        limit=lambda run, process: _limit_of(run.processes[process].direct),
        accounted=lambda process: process.direct is not None,
    ),
    Measure(
        "heap",
        "heap.used",
        "bytes",
        "Accounted heap memory",
        "What topic listings hold while the list is made, until the answer is in the queue.",
        peak=lambda process: process.heap.high_water_bytes if process.heap else None,
        limit=lambda run, process: _limit_of(run.processes[process].heap),
        accounted=lambda process: process.heap is not None,
    ),
    Measure(
        "direct-queue",
        "direct.waiting",
        "count",
        "Requests that wait for direct memory",
        "They hold their heap memory while they wait; whoever waits too long is refused.",
        nothing="No request was seen waiting in any run.",
        accounted=lambda process: process.direct is not None,
    ),
    Measure(
        "heap-queue",
        "heap.waiting",
        "count",
        "Requests that wait for heap memory",
        "Not started yet; when the queue is full or the wait too long, they are refused.",
        nothing="No request was seen waiting in any run.",
        accounted=lambda process: process.heap is not None,
    ),
    Measure(
        "jvm-direct",
        "jvm.direct.used",
        "bytes",
        "Direct memory of the JVM",
        "All of it, whoever holds it; only a server in Java tells it.",
    ),
    Measure(
        "jvm-heap",
        "jvm.heap.used",
        "bytes",
        "Heap memory of the JVM",
        "All of it, garbage included; only a server in Java tells it.",
    ),
    Measure(
        "cpu",
        "cpu.seconds",
        "cores",
        "Processor time",
        "Processors that the process kept busy. A server of one thread that is at 1 is the limit.",
        rate=True,
    ),
    Measure(
        "descriptors",
        "descriptors",
        "count",
        "Open descriptors",
        "Sockets and files of the process; at its limit no further client is accepted.",
        peak=lambda process: process.descriptors_peak,
        limit=_near_limit_of_descriptors,
    ),
    Measure(
        "connections",
        "connections",
        "count",
        "Connections",
        "As the server counts them; a proxy's own to its broker are among the broker's.",
    ),
)
