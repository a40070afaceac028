"""The checks of a run: what had to hold, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckResult:
    """One thing that had to hold, whether it did, and the sentence with its figures."""

    name: str
    passed: bool
    sentence: str
