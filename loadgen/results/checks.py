"""The checks of a run: each expectation, and whether it was met."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckResult:
    """One expectation, whether it was met, and a sentence with the figures.

    Attributes:
        neutral: Whether meeting it is no merit: a fault of Pulsar was reproduced. Reports mark such
            a check with ``!`` in place of a tick.
        judged: False where there was too little to judge; marked with a dash.
    """

    name: str
    passed: bool
    sentence: str
    neutral: bool = False
    judged: bool = True

    @property
    def mark(self) -> str:
        """The sign that reports print before the sentence."""
        if not self.passed:
            return "✗"
        if not self.judged:
            return "–"  # noqa: RUF001 - a dash of a tick's width
        return "!" if self.neutral else "✓"
