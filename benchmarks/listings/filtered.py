"""Listings with topics patterns, and listings with the smallest possible answer.

Every round measures each kind of request once, one after the other; a ratio compares them in the
same round. The cost of new patterns is given per second of the broker's processor time, that is, of
a core that does nothing else.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.listings.corpus import (
    NAMESPACE,
    answer_of,
    listing_names,
    write_text_file,
)
from benchmarks.processes import MeasuredServer, measured_server, run_json, yardstick
from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.places.operator_files import local_broker
from loadgen.places.server_process import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

EMPTY_NAMESPACE = "bench/empty"
SEEN, FIRST, SCATTERED, RANGE = "seen", "first", "scattered", "range"
UNFILTERED, EMPTY, PARSING = "unfiltered", "empty", "parsing"
GOAL_FIRST_PER_CORE_SECOND = 500
GOAL_SEEN = 0.9
PATTERNS_A_ROUND = 1_000_000
"""More than the requests of a round."""
GOAL_EMPTY = 0.5
Round = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Kind:
    """A kind of list request.

    Attributes:
        label: The name in the table.
        pattern: The topics pattern, in which ``{}`` is a new number in each request; None for none.
        keeps: Returns True if the pattern keeps the name with a given number.
        namespace: The listed namespace.
    """

    label: str
    pattern: str | None
    keeps: Callable[[int], bool]
    namespace: str = NAMESPACE

    def answer(self) -> bytes:
        """Return the bytes of the complete answer to this kind of request."""
        empty = self.namespace == EMPTY_NAMESPACE
        kept = [] if empty else [name for i, name in enumerate(listing_names()) if self.keeps(i)]
        return answer_of(kept, filtered=self.pattern is not None)


_ALL_DIGITS = f"{NAMESPACE}/0*"
_BEGINNING = listing_names(1)[0].removeprefix("persistent://")[:-4]
KINDS = {
    UNFILTERED: Kind("no pattern", None, lambda _: True),
    SEEN: Kind("a pattern seen before, keeps 90 %", f"{NAMESPACE}/.*[0-8]", lambda i: i % 10 < 9),
    FIRST: Kind(
        "first seen, keeps 1 % in a row", f"{_ALL_DIGITS}(?:42|x{{}})..", lambda i: i // 100 == 42
    ),
    SCATTERED: Kind(
        "first seen, keeps 1 % scattered", f"{NAMESPACE}/.*(?:42|x{{}})", lambda i: i % 100 == 42
    ),
    RANGE: Kind(
        "first seen, a long literal beginning",
        f"{_BEGINNING}42..|{_BEGINNING}42x{{}}",
        lambda i: i // 100 == 42,
    ),
    EMPTY: Kind("the smallest answer", None, lambda _: True, EMPTY_NAMESPACE),
}


def run(options: BenchOptions) -> BenchResult:
    """Measure each kind of request in each round.

    Raises:
        BenchError: A round could not be measured.
        ServerStartError: The broker did not start.
    """
    answers = {name: kind.answer() for name, kind in KINDS.items()}
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as name:
        folder = Path(name)
        names_file, answer_file = folder / "names.txt", folder / "answer"
        write_text_file(names_file)
        answer_file.write_bytes(answers[EMPTY])
        # A pattern with a long prefix exceeds the broker's default.
        own = {"floodgateProfile": "floodgate", "subscriptionPatternMaxLength": "500"}
        words = ("--import", str(names_file))
        launch = ServerLaunch("broker", {**local_broker(), **own}, folder / "broker.log", words)
        with (
            running_server(launch) as broker,
            yardstick("benchmarks.listings.parsing_server", str(answer_file)) as parsing,
        ):
            return conclude(_rounds(measured_server(broker), parsing, answers, options))


def _rounds(
    broker: MeasuredServer,
    parsing: MeasuredServer,
    answers: Mapping[str, bytes],
    options: BenchOptions,
) -> list[Round]:
    rounds: list[Round] = []
    for number in range(1, options.rounds + 1):
        found: Round = {}
        for name, kind in KINDS.items():
            options.note(f"round {number}: {kind.label}")
            found[name] = _measured(broker, kind, len(answers[name]), options.seconds, number)
        options.note(f"round {number}: the yardstick of the smallest answer")
        found[PARSING] = _measured(parsing, KINDS[EMPTY], len(answers[EMPTY]), options.seconds)
        rounds.append(found)
    return rounds


def _measured(
    server: MeasuredServer, kind: Kind, answer_bytes: int, seconds: float, number: int = 0
) -> dict[str, float]:
    """Measure one kind of request; each round has new patterns, because results are cached."""
    host, port, pid = server
    pattern = () if kind.pattern is None else ("--pattern", kind.pattern)
    found = run_json(
        "benchmarks.listings.client",
        *("--namespace", kind.namespace),
        *pattern,
        *("--first", str(number * PATTERNS_A_ROUND)),
        *(host, str(port), str(answer_bytes), str(seconds), str(pid)),
    )
    (cpu_seconds,) = found["cpu_seconds"]
    return {
        "per_second": found["answers"] / found["seconds"],
        "per_core_second": found["answers"] / max(1e-9, cpu_seconds),
        "bytes_per_core_second": found["answers"] * answer_bytes / max(1e-9, cpu_seconds),
        "core_share": cpu_seconds / found["seconds"],
    }


def conclude(rounds: Sequence[Round]) -> BenchResult:
    """Return the figures of all rounds as a benchmark result."""
    figures = [_per_core(name, rounds) for name in (FIRST, SCATTERED, RANGE, UNFILTERED, SEEN)]
    figures.append(
        Figure(
            f"bytes a core second: {KINDS[SEEN].label} / {KINDS[UNFILTERED].label}",
            "ratio",
            [_bytes(one, SEEN) / _bytes(one, UNFILTERED) for one in rounds],
            GOAL_SEEN,
        )
    )
    for name, label in ((EMPTY, "broker"), (PARSING, "server that only parses")):
        values = [one[name]["per_second"] for one in rounds]
        figures.append(Figure(f"{KINDS[EMPTY].label}: {label}", "answers/s", values))
    ratios = [one[EMPTY]["per_core_second"] / one[PARSING]["per_core_second"] for one in rounds]
    figures.append(
        Figure("answers a core second: broker / only parsing", "ratio", ratios, GOAL_EMPTY)
    )
    raw: list[dict[str, Any]] = [*rounds]
    return BenchResult(figures, [], raw)


def _per_core(name: str, rounds: Sequence[Round]) -> Figure:
    values = [one[name]["per_core_second"] for one in rounds]
    goal = GOAL_FIRST_PER_CORE_SECOND if name in (FIRST, SCATTERED, RANGE) else None
    return Figure(KINDS[name].label, "a core second", values, goal)


def _bytes(found: Round, name: str) -> float:
    return found[name]["bytes_per_core_second"]
