"""A check that was met gets a tick only where meeting it is a merit."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from loadgen.report.judged import check_list
from loadgen.report.tables import check_grid
from loadgen.results.checks import CheckResult

MARKS = [
    (CheckResult("x", True, "Fixed."), "✓"),
    (CheckResult("x", True, "Reproduced.", neutral=True), "!"),
    (CheckResult("x", True, "Too small.", judged=False), "–"),  # noqa: RUF001
    (CheckResult("x", False, "Missed."), "✗"),
    (CheckResult("x", False, "Not reproduced.", neutral=True), "✗"),
]


@pytest.mark.parametrize(("check", "mark"), MARKS)
def test_every_report_prints_the_mark_of_a_check(check: CheckResult, mark: str) -> None:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(check_grid([check]))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().split() == [mark, *check.sentence.split()]
    assert f"{mark}</span>{check.sentence}</li>" in check_list([check])
