"""One run: cases played to a real server twice and to Floodgate, many side by side."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.differential.comparison import compare, differs_from_itself
from tests.differential.generator import shared_worlds
from tests.differential.player import (
    Played,
    Side,
    own_namespace,
    play,
    prepare,
    shared_namespace,
    use,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.differential.cases import Case
    from tests.differential.comparison import StepComparison
    from tests.support.golden_connection import GoldenConnection

SIDE_BY_SIDE = 48


@dataclass(frozen=True)
class Outcome:
    """One case, played.

    Attributes:
        real: What the real server said, the first time.
        ours: What Floodgate said.
        dropped: Whether the real one differed from itself.
        steps: The comparison of each step that both took.
    """

    case: Case
    real: Played
    ours: Played
    dropped: bool
    steps: tuple[StepComparison, ...]

    @property
    def same_codes(self) -> bool:
        """Whether kinds and codes agree in every step."""
        return self._same_length and all(step.same_codes for step in self.steps)

    @property
    def same_fields(self) -> bool:
        """Whether every field agrees in every step."""
        return self.same_codes and not any(step.found for step in self.steps)

    @property
    def _same_length(self) -> bool:
        return len(self.real.answers) == len(self.ours.answers)


def new_label() -> str:
    """Return six characters that no other run has in its names."""
    return "d" + "".join(secrets.choice("0123456789bcdfghjklmnpqrstvwxz") for _ in range(5))


class Run:
    """A real server, Floodgate, and what was prepared on both for a seed."""

    def __init__(self, real: Side, ours: Side, seed: int) -> None:
        self._real = real
        self._ours = ours
        self._worlds = shared_worlds(seed)
        self._used = 0
        self._used_by: list[GoldenConnection] = []

    def prepare(self) -> None:
        """Make the shared namespaces on both sides."""
        for side in (self._real, self._ours):
            for number, world in enumerate(self._worlds):
                namespace = shared_namespace(side, number)
                prepare(side, namespace, world)
                self._used_by += use(side, namespace, world)

    def play_all(self, cases: Sequence[Case], note: Callable[[int], None]) -> list[Outcome]:
        """Play cases, many side by side."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            done: list[Outcome] = []
            for outcome in pool.map(self.play, cases):
                done.append(outcome)
                note(len(done))
            return done

    def play(self, case: Case) -> Outcome:
        """Play one case to the real server twice, and to Floodgate."""
        self._used += 1
        number = self._used
        first = self._play(case, self._real, number, "a")
        second = self._play(case, self._real, number, "b")
        ours = self._play(case, self._ours, number, "a")
        dropped = differs_from_itself(case, first, second)
        return Outcome(case, first, ours, dropped, tuple(compare(case, first, ours)))

    def _play(self, case: Case, side: Side, number: int, again: str) -> Played:
        if case.shared is not None:
            return play(case, side, shared_namespace(side, case.shared))
        namespace = own_namespace(side, number, again)
        prepare(side, namespace, case.world)
        with ExitStack() as users:
            for user in use(side, namespace, case.world):
                users.enter_context(user)
            return play(case, side, namespace)
