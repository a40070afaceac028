"""Run: cases played to a real server twice and to Floodgate, many concurrently."""

from __future__ import annotations

import itertools
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tests.differential.cases import Case
from tests.differential.comparison import StepComparison, compare, differs_from_itself
from tests.differential.generator import shared_worlds
from tests.differential.player import (
    PATIENT_SECONDS,
    QUIET_SECONDS,
    Played,
    Side,
    TopicUsers,
    own_namespace,
    play,
    prepare,
    shared_namespace,
)
from tests.differential.recording import recorded
from tests.differential.sides import floodgate_side, real_side

SIDE_BY_SIDE = 48
DEVIATIONS = Path(__file__).with_name("deviations.toml")


@dataclass(frozen=True)
class Outcome:
    """Played case.

    Attributes:
        real: The real server's first answers.
        ours: Floodgate's answers.
        dropped: Whether the real server differed from itself.
        steps: Comparison of each step that both sides executed.
        patiently: Whether the case was replayed with more time.
    """

    case: Case
    real: Played
    ours: Played
    dropped: bool
    steps: tuple[StepComparison, ...]
    patiently: bool = False

    @property
    def of_the_clock(self) -> bool:
        """True if a slow server may explain the difference: a step ended by timeout."""
        timed = any(step.ends_quietly for step in self.case.steps)
        return timed and (self.dropped or not self.same_codes)

    @property
    def same_codes(self) -> bool:
        """True if kinds and codes agree in every step."""
        return self._same_length and all(step.same_codes for step in self.steps)

    @property
    def same_fields(self) -> bool:
        """True if every field agrees in every step."""
        return self.same_codes and not any(step.found for step in self.steps)

    @property
    def _same_length(self) -> bool:
        return len(self.real.answers) == len(self.ours.answers)


def _difference(outcome: Outcome) -> tuple[object, ...] | None:
    """Return the class and the fields of the first differing step."""
    found = next((step for step in outcome.steps if step.found), None)
    return found and (found.kind, frozenset(one.field for one in found.found))


@contextmanager
def open_run(seed: int, *, through_proxy: bool) -> Iterator[Run | None]:
    """Start Floodgate and prepare both sides for a seed; None without a real server."""
    label = new_label()
    real = real_side(label, through_proxy=through_proxy)
    if real is None:
        yield None
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        floodgate_side(label, Path(folder), through_proxy=through_proxy) as ours,
        Run(real, ours, seed) as run,
    ):
        run.prepare()
        yield run


def new_label() -> str:
    """Return six characters that are unique to this run."""
    return "d" + "".join(secrets.choice("0123456789bcdfghjklmnpqrstvwxz") for _ in range(5))


class Run:
    """Real server, Floodgate, and the namespaces prepared for a seed."""

    def __init__(self, real: Side, ours: Side, seed: int) -> None:
        self._real = real
        self._ours = ours
        self._worlds = shared_worlds(seed)
        self._numbers = itertools.count(1)
        self._open = ExitStack()
        self._plays = self._open.enter_context(ThreadPoolExecutor(3 * SIDE_BY_SIDE))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def prepare(self) -> None:
        """Create the shared namespaces on both sides."""
        for side in (self._real, self._ours):
            for number, world in enumerate(self._worlds):
                namespace = shared_namespace(side, number)
                prepare(side, namespace, world)
                self._open.enter_context(TopicUsers(side, namespace, world))

    def play_all(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Play cases concurrently; yield outcomes in order."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            yield from pool.map(self.play, cases)

    def differs_like(self, outcome: Outcome) -> Callable[[Case], bool]:
        """Return a predicate: does a case differ in the same class and fields?"""
        wanted = _difference(outcome)

        def differs(case: Case) -> bool:
            again = self.play(case)
            return not again.dropped and _difference(again) == wanted

        return differs

    def recording(self, case: Case, name: str) -> dict[str, Any]:
        """Play a case without topic users to the real server; return a recording's line."""
        namespace = own_namespace(self._real, next(self._numbers), "r")
        prepare(self._real, namespace, case.world)
        return recorded(case, play(case, self._real, namespace), namespace, name)

    def play(self, case: Case) -> Outcome:
        """Play a case to the real server twice, and to Floodgate.

        If plays differ after a step without an answer of its own, all three plays are repeated with
        more time, and the repetition counts.
        """
        outcome = self._played(case, QUIET_SECONDS)
        if outcome.of_the_clock:
            return replace(self._played(case, PATIENT_SECONDS), patiently=True)
        return outcome

    def _played(self, case: Case, quiet_seconds: float) -> Outcome:
        number = next(self._numbers)
        plays = [
            self._plays.submit(self._play, case, side, number, again, quiet_seconds)
            for side, again in ((self._real, "a"), (self._real, "b"), (self._ours, "a"))
        ]
        first, second, ours = [one.result() for one in plays]
        dropped = differs_from_itself(case, first, second)
        return Outcome(case, first, ours, dropped, tuple(compare(case, first, ours)))

    def _play(
        self, case: Case, side: Side, number: int, again: str, quiet_seconds: float
    ) -> Played:
        if case.shared is not None:
            return play(case, side, shared_namespace(side, case.shared), quiet_seconds)
        namespace = own_namespace(side, number, again)
        prepare(side, namespace, case.world)
        with TopicUsers(side, namespace, case.world):
            return play(case, side, namespace, quiet_seconds)
