"""The cost of a created or deleted topic that 400 watchers of 10,000 names are notified of.

The figure is the processor time of the server process per event, from the store to the last write.
A name has 100 bytes. In some cases all watchers have the same pattern; in others they have 400
patterns that keep different sets of 9,975 names and the new name. Each is measured on 400
connections and on 4. Each round also measures a bare uvloop server that writes as many frames of
the same bytes. After every round every watcher's names and hash are checked.
"""

from __future__ import annotations

import json
import random
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.controlled_process import ControlledProcess, controlled_process
from benchmarks.processes import BenchError
from benchmarks.result import BenchOptions, BenchResult, Figure
from benchmarks.watches.corpus import (
    NAMES,
    NAMESPACE,
    SHARED_PATTERN,
    event_names,
    kept_without,
    pattern_without,
    watched_names,
    write_names,
)
from loadgen.places.operator_files import local_broker
from proto.topic_hash import topics_hash
from proto.watch_commands import WatchUpdate, encode_changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WATCHERS = 400
SHARED_EVENTS_PER_SECOND, DIFFERENT_EVENTS_PER_SECOND = 25.0, 10.0
"""Creations, and as many deletions, in a round for each second of ``--seconds``."""
SHARED_GOAL_MS, DIFFERENT_GOAL_MS = 5.0, 20.0
RECORDED_EVENT_MS, RECORDED_UPDATE_MS = 290.0, 0.7
"""A real Apache Pulsar 4.2.4 broker with 400 watchers of a pattern on 10,000 names."""
_SETTINGS = {**local_broker(), "floodgateProfile": "floodgate"}


@dataclass(frozen=True)
class Case:
    """An arrangement of watchers: their patterns, and the number of their connections.

    Attributes:
        different: Whether each watcher has a pattern and a set of names of its own.
        connections: Number of connections: one for each watcher, or few.
    """

    different: bool
    connections: int

    @property
    def label(self) -> str:
        """The name of the case in a table."""
        what = f"{WATCHERS} sets" if self.different else "one set"
        return f"{what}, {self.connections} connections"

    @property
    def goal_ms(self) -> float:
        """The goal for the processor time per event, in milliseconds."""
        return DIFFERENT_GOAL_MS if self.different else SHARED_GOAL_MS

    @property
    def patterns(self) -> list[str]:
        """The topics pattern of each watcher."""
        if self.different:
            return [pattern_without(number) for number in range(WATCHERS)]
        return [SHARED_PATTERN] * WATCHERS

    def events(self, seconds: float) -> int:
        """Return the number of topics that are created, and then deleted, in a round."""
        rate = DIFFERENT_EVENTS_PER_SECOND if self.different else SHARED_EVENTS_PER_SECOND
        return max(2, round(rate * seconds))


CASES = tuple(Case(different, count) for different in (False, True) for count in (WATCHERS, 4))


@dataclass
class Found:
    """The measurements of a case, with a value per round in processor milliseconds per event."""

    setup_seconds: float = 0.0
    setup_cpu_ms: float = 0.0
    created: list[float] = field(default_factory=list)
    deleted: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Sides:
    """The processes of a case: the measured server, the yardstick, and the clients of both."""

    server: ControlledProcess
    bare: ControlledProcess
    watchers: ControlledProcess
    sinks: ControlledProcess


def run(options: BenchOptions) -> BenchResult:
    """Measure all cases in all rounds.

    Raises:
        BenchError: A process failed, or a watcher received a wrong update.
    """
    found: dict[Case, Found] = {}
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder:
        for case in CASES:
            with _sides(Path(folder)) as sides:
                found[case] = _measured(case, sides, options)
    return conclude(found)


@contextmanager
def _sides(folder: Path) -> Iterator[Sides]:
    names = folder / "names.txt"
    write_names(names)
    with ExitStack() as stack:

        def start(module: str, *arguments: str) -> ControlledProcess:
            log = folder / f"{module}.log"
            return stack.enter_context(controlled_process(module, log, *arguments))

        server = start("benchmarks.watches.server", json.dumps(_SETTINGS), str(names))
        bare = start("benchmarks.watches.bare_writer")
        clients = (start("benchmarks.watches.client") for _ in range(2))
        yield Sides(server, bare, *clients)


def _measured(case: Case, sides: Sides, options: BenchOptions) -> Found:
    options.note(f"{case.label}: set-up")
    found = Found()
    sides.sinks.ask("sink", url=sides.bare.ready["service_url"], connections=case.connections)
    before = sides.server.ask("figures")["cpu_seconds"]
    watched = sides.watchers.ask(
        "watch",
        url=sides.server.ready["service_url"],
        namespace=NAMESPACE,
        patterns=case.patterns,
        connections=case.connections,
        at_once=WATCHERS,
    )
    found.setup_seconds = watched["seconds"]
    found.setup_cpu_ms = 1000 * (sides.server.ask("figures")["cpu_seconds"] - before)
    _check(case, sides, 0)
    chance = random.Random(7)
    for number in range(options.rounds):
        options.note(f"{case.label}: round {number + 1}")
        _measure_round(case, sides, case.events(options.seconds), chance, found)
    return found


def _measure_round(
    case: Case, sides: Sides, events: int, chance: random.Random, found: Found
) -> None:
    names = event_names(chance.sample(range(NAMES), events))
    for came, values in ((True, found.created), (False, found.deleted)):
        told = sides.server.ask(
            "change", namespace=NAMESPACE, names=names, came=came, updates=WATCHERS
        )
        values.append(1000 * told["cpu_seconds"] / events)
        sides.watchers.ask("expect", updates=events * WATCHERS)
    bare = sides.bare.ask("write", frame=_a_frame(names[0]).hex(), events=events, writes=WATCHERS)
    found.bare.append(1000 * bare["cpu_seconds"] / events)
    _check(case, sides, 2 * events * WATCHERS)


def _a_frame(name: str) -> bytes:
    """Return an update frame as the server sends it to every watcher."""
    return WatchUpdate(encode_changes([name.encode()], []), "00000000").frame(0)


def _check(case: Case, sides: Sides, updates: int) -> None:
    """Check each watcher's updates, and that its names are the initial names again.

    Raises:
        BenchError: A watcher's names are wrong.
    """
    known = sides.watchers.ask("verify")
    if known["problems"] or known["updates"] != updates:
        raise BenchError(f"{case.label}: {known['updates']} updates; {known['problems']}")
    if known["watchers"] != expected_sets(case):
        raise BenchError(f"{case.label}: a watcher's names are not those that its pattern keeps")


def expected_sets(case: Case) -> list[list[Any]]:
    """Return the number and hash of the names that each watcher should have."""
    if case.different:
        kept = [kept_without(number) for number in range(WATCHERS)]
        return [[len(names), topics_hash(names)] for names in kept]
    names = watched_names()
    return [[len(names), topics_hash(names)]] * WATCHERS


def conclude(found: dict[Case, Found]) -> BenchResult:
    """Return the figures of all cases as a benchmark result."""
    figures = [figure for case, one in found.items() for figure in _figures(case, one)]
    figures += [
        Figure(
            "a real broker, recorded: one set, 400 connections: created", "ms", [RECORDED_EVENT_MS]
        ),
        Figure("... an update", "ms", [RECORDED_UPDATE_MS]),
    ]
    remarks = [
        f"Processor time of the server process for each event, of which all {WATCHERS} watchers "
        "are told; kernel included.",
        "Bare: a uvloop server writes as many frames of the same size and computes nothing; what "
        "one connection gets in a turn of the loop it writes at once.",
        "Every update's hash was checked against all names its watcher knows.",
    ]
    rounds: list[dict[str, Any]] = [{case.label: vars(one)} for case, one in found.items()]
    return BenchResult(figures, remarks, rounds)


def _figures(case: Case, one: Found) -> Sequence[Figure]:
    events = [(a + b) / 2 for a, b in zip(one.created, one.deleted, strict=True)]
    ratios = [event / bare for event, bare in zip(events, one.bare, strict=True)]
    updates = [1000 * value / WATCHERS for value in one.created]
    return (
        Figure(f"{case.label}: created", "ms", one.created, case.goal_ms, at_most=True),
        Figure("... deleted", "ms", one.deleted, case.goal_ms, at_most=True),
        Figure("... an update", "µs", updates),
        Figure(f"... {WATCHERS} bare writes", "ms", one.bare),
        Figure("... event / bare", "ratio", ratios),
        Figure("... set-up of all watches", "s", [one.setup_seconds]),
        Figure("... its processor time", "ms", [one.setup_cpu_ms]),
    )
