"""Virtual time is true: a document has the same results in it and in real runs."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadgen.documents.model import Document
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.virtual.cases import cases

RUNS = 3
SHARE_OF_REQUESTS = 0.02
SHARE_OF_MEDIAN = 0.05
LEAST_SECONDS = 0.02


@dataclass(frozen=True)
class Outcome:
    """The result of a run. The median is of the answered requests' response times."""

    answered: int
    refused: int
    others: int
    median_seconds: float

    @classmethod
    def of(cls, directory: Path) -> Outcome:
        """Count a run's requests."""
        rows = pq.read_table(directory / "requests", columns=["outcome", "response_seconds"])
        counts = Counter(rows["outcome"].to_pylist())
        seconds = rows.filter(pc.equal(rows["outcome"], "answered"))["response_seconds"]
        others = rows.num_rows - counts["answered"] - counts["refused"]
        median = statistics.median(seconds.to_pylist()) if len(seconds) else 0.0
        return cls(counts["answered"], counts["refused"], others, median)


def prove(options: ProofOptions) -> ProofResult:
    """Run each case for real and in virtual time, and compare."""
    result = ProofResult()
    for case in cases(quick=options.quick):
        options.note(case.name)
        compare(case, options.out / case.name, result, 1 if options.quick else RUNS)
    return result


def compare(case: Document, out: Path, result: ProofResult, runs: int) -> None:
    """Compare a case's virtual run with the median of real runs."""
    found = Outcome.of(experiment(case, RunOptions(out, "virtual", place="virtual")))
    real = [
        Outcome.of(experiment(case, RunOptions(out, f"real-{number}", tasks=1)))
        for number in range(runs)
    ]
    middle = Outcome(
        *(statistics.median(values) for values in zip(*map(_values, real), strict=True))
    )
    total = found.answered + found.refused + found.others
    allowed = max(SHARE_OF_REQUESTS * total, 0.5)
    allowed_seconds = max(SHARE_OF_MEDIAN * middle.median_seconds, LEAST_SECONDS)
    result.figures[case.name] = {
        "virtual": vars(found),
        "real": [vars(each) for each in real],
        "requests": total,
    }
    result.check(
        case.name,
        abs(found.answered - middle.answered) <= allowed
        and abs(found.refused - middle.refused) <= allowed
        and abs(found.median_seconds - middle.median_seconds) <= allowed_seconds,
        f"{case.name}: {found.answered} answered, {found.refused} refused, median "
        f"{found.median_seconds:.3f} s; real {middle.answered:g}, {middle.refused:g}, "
        f"{middle.median_seconds:.3f} s",
    )


def _values(outcome: Outcome) -> tuple[float, ...]:
    return outcome.answered, outcome.refused, outcome.others, outcome.median_seconds
