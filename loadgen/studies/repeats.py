"""Repeated runs of a scenario, and alternating runs of two sides to be compared.

:mod:`loadgen.results.comparing` computes from the runs' tables whether the sides differ or agree.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from loadgen.documents.model import MOST_REPEATS
from loadgen.errors import UsageError
from loadgen.places.experiment import experiment
from loadgen.places.launcher import ServerFiles
from loadgen.places.options import RunOptions, resolved
from loadgen.report.page import write_run
from loadgen.results.comparing import compare, finished_run
from loadgen.results.results import Results
from loadgen.results.verdict import Level

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadgen.documents.model import Document
    from loadgen.results.comparing import Comparison
    from loadgen.results.verdict import Verdict
    from loadgen.studies.points import Experiment


class Side(NamedTuple):
    """One of the sides to compare: a scenario, and options such as its label and servers."""

    document: Document
    options: RunOptions


class FinishedSide(NamedTuple):
    """A finished run of one side: its directory and its verdict."""

    directory: Path
    verdict: Verdict


def profiles(document: Document, options: RunOptions) -> list[Side]:
    """Return two sides: a scenario with servers in profile ``floodgate``, and in ``pulsar``."""
    found, name = [], options.name or document.name
    for profile, label in (("floodgate", "Floodgate"), ("pulsar", "As in Pulsar")):
        servers = document.servers.model_copy(update={"profile": profile})
        how = replace(options, name=f"{name}-{profile}", label=label)
        found.append(Side(document.model_copy(update={"servers": servers}), how))
    return found


def beside(
    document: Document, options: RunOptions, service_url: str, admin_url: str = ""
) -> list[Side]:
    """Return two sides: a scenario run against Floodgate, and against a running Pulsar.

    Args:
        document: The scenario, whose requests are sent to both.
        options: The options of both sides; files of servers are for Floodgate alone.
        service_url: The service URL of the real Pulsar.
        admin_url: The web port of that Pulsar, for metrics; empty: no metrics.
    """
    urls = {"broker": admin_url} if admin_url else {}
    own = replace(options, name="floodgate", label="Floodgate")
    theirs = replace(own, name="pulsar", label="Pulsar", service_url=service_url, admin_urls=urls)
    theirs = replace(theirs, pids={}, files=ServerFiles())
    return [Side(document, own), Side(document, theirs)]


def run_sides(
    sides: Sequence[Side],
    repeats: int,
    on_run: Callable[[FinishedSide], None] = lambda finished: None,
    run: Experiment = experiment,
) -> list[FinishedSide]:
    """Run all sides repeatedly and alternately, so that changes of the machine affect all equally.

    In virtual time the machine has no effect: each repeat has the next seed, the same for all
    sides. Each run is judged and its files are written. An interrupted run is the last one.

    Args:
        sides: The sides; a single one for repeats of a run.
        repeats: Number of runs of each side.
        on_run: Called with each finished run.
        run: Runs a scenario document.

    Returns:
        All runs of the first side, then of the next.

    Raises:
        UsageError: The options do not fit; no run was made.
        LoadgenError: A run could not be made.
    """
    if not 1 <= repeats <= MOST_REPEATS:
        raise UsageError(f"--repeats {repeats}: must be 1 to {MOST_REPEATS:,}")
    turns = product(range(repeats), enumerate(sides))
    planned = [(place, _repeat(side, number, repeats)) for number, (place, side) in turns]
    done: list[tuple[int, FinishedSide]] = []
    for place, (document, options) in planned:
        directory = run(document, options)
        with Results.open(directory) as results:
            finished = FinishedSide(directory, write_run(results))
        done.append((place, finished))
        on_run(finished)
        if finished.verdict.level is Level.INTERRUPTED:
            break
    return [finished for _, finished in sorted(done, key=itemgetter(0))]


def _repeat(side: Side, number: int, of: int) -> Side:
    """Return one repeat of a compared scenario, with its run's name and, if simulated, its seed."""
    document, options = side
    full = resolved(document, options)[1]
    options = replace(options, name=full.name)
    if of > 1:
        label = options.label or full.name
        options = replace(options, name=f"{full.name}-{number + 1}", label=label)
    further = number if full.place == "virtual" else 0
    return Side(document.model_copy(update={"seed": document.seed + further}), options)


def compared(
    directories: Sequence[Path], baseline: str | None = None, *, force: bool = False
) -> Comparison:
    """Compare finished runs; runs with the same label are repeats of each other.

    Raises:
        UsageError: A directory is not that of a run or is named twice, or the runs are too
            different.
    """
    places = [directory.resolve() for directory in directories]
    for place, directory in zip(places, directories, strict=True):
        if places.count(place) > 1:
            raise UsageError(f"{directory} is named twice: a run cannot be its own repeat")
    return compare([finished_run(each) for each in directories], baseline, force=force)
