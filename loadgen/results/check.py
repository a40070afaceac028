"""One verdict of the demo, on the terminal and in the report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckResult:
    """One thing that had to hold, whether it did, and the sentence with its figures."""

    name: str
    passed: bool
    sentence: str
