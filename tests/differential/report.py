"""Counts exchanges on the binary protocol, and describes differences."""

from collections.abc import Iterable, Iterator

from tests.differential.deviations import Deviation
from tests.differential.figures import Figures
from tests.differential.run import Outcome
from tests.support.golden.exchange import Silence


def count(figures: Figures, outcome: Outcome, deviations: Iterable[Deviation]) -> None:
    figures.patiently += outcome.patiently
    if outcome.dropped:
        figures.dropped += 1
        return
    figures.compared += 1
    figures.answered += not isinstance(outcome.real.last, Silence)
    figures.same_codes += outcome.same_codes
    figures.same_fields += outcome.same_fields
    if (known := listed(outcome, deviations)) is not None:
        figures.listed[known.name] += 1
        figures.listed_codes += not outcome.same_codes
    first = _first_difference(outcome)
    for number, step in enumerate(outcome.steps):
        figures.fields += step.fields
        figures.masked.update(step.masked)
        as_listed = known is not None and number == first
        figures.count_request([class_of(step.kind)], alike=step.same_codes, as_listed=as_listed)


def class_of(kind: str) -> str:
    """Return the report class of a step's kind: raw frames share a class."""
    return "raw frame" if kind.startswith("raw") else kind


def listed(outcome: Outcome, deviations: Iterable[Deviation]) -> Deviation | None:
    """Return the deviation that covers the first difference of a case, or None."""
    first = _first_difference(outcome)
    if first is None:
        return None
    return next((one for one in deviations if one.covers(outcome.case.steps[first])), None)


def _first_difference(outcome: Outcome) -> int | None:
    steps = enumerate(outcome.steps)
    return next((n for n, step in steps if step.found or not step.same_codes), None)


def difference_lines(outcome: Outcome) -> Iterator[str]:
    """Yield a case up to its first difference, and the difference."""
    yield f"{outcome.case.name}:"
    for taken, step in zip(outcome.case.steps, outcome.steps, strict=False):
        yield f"  {step.kind}: {str(taken)[:400]}"
        if step.found:
            for one in step.found:
                yield f"      {one.field}: real {one.recorded[:200]} | ours {one.answered[:200]}"
            return
