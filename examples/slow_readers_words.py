"""Tables and sentences about the results of ``examples.slow_readers``."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from examples.figures import (
    WaitFigures,
    format_count,
    format_part,
    format_wait,
    with_range,
)
from examples.replies import Readers
from limiter.admission.rules import AdmissionPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from examples.replies import RunFigures, Workload

GROUPS = {
    "all": "all requests",
    "small": "small replies",
    "large": "large replies",
    "fast": "fast readers",
    "slow": "slow readers",
    "idle": "idle clients",
    "busy": "busy clients",
}
PAYERS = {
    Readers.OWN: ("small", "large"),
    Readers.CONNECTIONS: ("fast", "slow", "large"),
    Readers.MIXED: ("idle", "busy", "large"),
}
"""Groups that an order favours or delays; the verdict gives the wait of each."""
MEASURES: dict[str, Callable[[WaitFigures], float]] = {
    "p50": lambda figures: figures.p50_seconds,
    "p99": lambda figures: figures.p99_seconds,
    "p99.9": lambda figures: figures.p999_seconds,
    "longest": lambda figures: figures.max_seconds,
}


def assumptions(workload: Workload) -> str:
    """Return a text with all assumptions of the simulation."""
    return (
        f"Limit {workload.limit_bytes:,} bytes, {workload.max_queue_size:,} places to wait, "
        f"timeout {workload.timeout_seconds:g} s. {workload.requests:,} requests arrive at random "
        f"(Poisson, open loop, {workload.requests_per_second:.1f} a second: an offered memory load "
        f"of {100 * workload.offered_load:g} %), after {workload.warm_up_seconds:g} s of warm-up. "
        f"{100 * workload.large_part:g} % of the replies have {workload.large_bytes:,} bytes, the "
        f"rest {workload.small_bytes:,}. A slow reader holds a reply for "
        f"{workload.slow_seconds:g} s, a fast one for {1000 * workload.fast_mean_seconds:g} ms in "
        f"the mean (exponential). {_who(workload)} They list {workload.namespaces} namespaces of "
        f"{workload.tenants} tenants equally often. A client is busy while its connection holds, "
        "or waits for, another reply. A refused request counts with its wait."
    )


def _who(workload: Workload) -> str:
    percent = f"{100 * workload.slow_part:g} %"
    if workload.readers is Readers.OWN:
        return f"Each request is of a connection of its own; {percent} of them are slow readers."
    if workload.readers is Readers.CONNECTIONS:
        return f"{workload.connections:,} connections ask; {percent} of them are slow readers."
    return f"{workload.connections:,} connections ask; each reads {percent} of its replies slowly."


def seed_table(runs: Sequence[RunFigures]) -> Table:
    """Return a table with a row for each simulation: the waits and outcomes of its requests."""
    table = Table(title="All requests, waits in seconds", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("Seed", "Policy", *MEASURES):
        table.add_column(heading, justify="left" if heading == "Policy" else "right")
    for heading in ("Timed out", "Queue full", "High water", "Mean used"):
        table.add_column(heading, justify="right")
    for run in runs:
        everybody = run.groups["all"]
        table.add_row(
            str(run.seed),
            run.policy.value,
            *(f"{measure(everybody):.2f}" for measure in MEASURES.values()),
            *map(format_count, (everybody.timed_out, everybody.queue_full)),
            format_part(run.high_water_part),
            format_part(run.mean_used_part),
        )
    return table


def group_table(runs: Sequence[RunFigures]) -> Table:
    """Return a table of the waits of each group of requests: median and range over the seeds."""
    table = Table(
        title="Who waits: median (range) over the seeds, in seconds",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("Who", no_wrap=True)
    table.add_column("Policy", no_wrap=True)
    for heading in ("p99", "p99.9", "longest", "Refused"):
        table.add_column(heading, justify="right", no_wrap=True)
    for group, words in GROUPS.items():
        for policy in dict.fromkeys(run.policy for run in runs):
            figures = [run.groups[group] for run in runs if run.policy is policy]
            if any(one.requests for one in figures):
                table.add_row(words, policy.value, *_group_row(figures))
        table.add_section()
    return table


def _group_row(figures: Sequence[WaitFigures]) -> list[str]:
    """Return the cells of a table row: a group's waits, and the number of its refused requests."""
    waits = [
        with_range([MEASURES[name](one) for one in figures], _short)
        for name in ("p99", "p99.9", "longest")
    ]
    return [*waits, format_count(sum(one.refused for one in figures))]


def _short(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.2f}"


def verdict(workload: Workload, runs: Sequence[RunFigures]) -> list[str]:
    """Return sentences that compare both policies; empty if only one was simulated."""
    fifo, fair = ([run for run in runs if run.policy is policy] for policy in AdmissionPolicy)
    if not fifo or not fair:
        return []
    pairs = [(a.groups["all"], b.groups["all"]) for a, b in zip(fifo, fair, strict=True)]
    longer = sum(b.p99_seconds > a.p99_seconds for a, b in pairs)
    shorter = sum(b.p99_seconds < a.p99_seconds for a, b in pairs)
    refuses = sum(b.refused > a.refused for a, b in pairs)
    as_expected = shorter > longer + refuses == 0
    return [
        f"Order: {'as' if as_expected else 'NOT as'} expected of one that fills gaps: fair has the "
        f"shorter p99 wait of all requests in {shorter} of {len(pairs)} seeds, the longer one in "
        f"{longer}, and refuses more of them in {refuses}.",
        *(_price(group, fifo, fair) for group in PAYERS[workload.readers]),
    ]


def _price(group: str, fifo: Sequence[RunFigures], fair: Sequence[RunFigures]) -> str:
    """Return a sentence that compares the waits of one group of requests under both policies."""
    waits = [
        " and ".join(
            format_wait(median(MEASURES[name](run.groups[group]) for run in runs))
            for name in ("p99", "longest")
        )
        for runs in (fair, fifo)
    ]
    refused = [sum(run.groups[group].refused for run in runs) for runs in (fair, fifo)]
    return (
        f"Price: {GROUPS[group]} wait {waits[0]} under fair, {waits[1]} under fifo (p99 and "
        f"longest, medians of the seeds); {refused[0]:,} and {refused[1]:,} of them were refused "
        "in all seeds."
    )
