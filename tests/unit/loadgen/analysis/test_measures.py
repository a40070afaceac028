"""The page of the documentation lists every measure, each with its unit, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from loadgen.analysis.measures import (
    ALL_REQUESTS,
    CLIENTS,
    OPERATIONS,
    SELECTORS,
    SERVERS,
    measures_of,
)
from loadgen.analysis.thresholds import OPERATORS, parse_threshold
from loadgen.errors import ExitCode

PAGE = (Path(__file__).parents[4] / "docs" / "measuring.md").read_text(encoding="utf-8")
NAMES = {"requests": (*OPERATIONS, ALL_REQUESTS), "`clients`": (CLIENTS,)}
SERVER_CELL = ", ".join(f"`{each}`" for each in SERVERS)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_lists_every_measure_with_its_unit() -> None:
    # Given
    begin = PAGE.index("| subject | measures |")
    rows = [cells(line) for line in PAGE[begin : PAGE.index("\n\n", begin)].splitlines()[2:]]
    # When
    told = {
        (subject, name, unit)
        for cell, measures, units, _ in rows
        for subject in NAMES.get(cell, SERVERS)
        for name, unit in with_units(re.findall(r"`([\w.]+)`", measures), units.split(", "))
    }
    # Then
    assert {row[0] for row in rows} == {*NAMES, SERVER_CELL}
    subjects = (*OPERATIONS, ALL_REQUESTS, CLIENTS, *SERVERS)
    assert told == {
        (subject, each.name, str(each.unit))
        for subject in subjects
        for each in measures_of(subject)
    }


def with_units(names: list[str], units: list[str]) -> list[tuple[str, str]]:
    """One unit for all, or one for each."""
    return list(zip(names, units * len(names) if len(units) == 1 else units, strict=True))


def test_the_page_names_operators_selectors_and_subjects() -> None:
    for word in (*OPERATORS, *SELECTORS, *OPERATIONS, ALL_REQUESTS):
        assert f"`{word}`" in PAGE, word


def test_the_example_of_the_page_is_a_threshold() -> None:
    (example,) = re.findall(r"as in `(.+?)`", PAGE)
    assert parse_threshold(example).subject == "list"


def test_the_page_lists_every_exit_code() -> None:
    begin = PAGE.index("| exit code |")
    rows = PAGE[begin : PAGE.index("\n\n", begin)].splitlines()[2:]
    assert sorted(int(cells(row)[0]) for row in rows) == sorted(map(int, ExitCode))
