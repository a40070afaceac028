"""Setting values are read as in a document; other forms are refused."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import UsageError
from loadgen.studies.find_limit import parse_range
from loadgen.studies.sweep import Varied, parse_grid, parse_varied


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b=10,010,no,true", (10, "010", "no", True)),
        ("a.b=100kB/s,{kind: at-once}", ("100kB/s", {"kind": "at-once"})),
        ("a.b=10..1000/3", (10, 100, 1000)),
        ("a.b=1..3/3", (1, 2, 3)),
        ("a.b=0.5..1/2", (0.5, 1.0)),
        ("a.b=100kB/s..10MB/s/3", ("100kB/s", "1000kB/s", "10000kB/s")),
        ("a.b=1000000B/s..20000000B/s/2", ("1000000B/s", "20000000B/s")),
        ("a.b=0.00001s..0.00004s/2", ("0.00001s", "0.00004s")),
    ],
)
def test_varied_values_are_read_as_in_a_document(text: str, values: tuple[Any, ...]) -> None:
    assert parse_varied(text) == Varied("a.b", values)


@pytest.mark.parametrize("text", ["a.b", "a.b=", "=1", "a.b=1..2", "a.b=2..1/3", "a.b=1..2/x"])
def test_malformed_varied_values_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--vary"):
        parse_varied(text)


def test_a_range_has_two_ascending_numbers_of_comparable_units() -> None:
    assert parse_range("a.b=1..10") == ("a.b", 1.0, 10.0, "")
    for text in ("a.b=x..1", "a.b=1", "a.b=1..inf", "a.b=1s..2MB", "a.b=1x..2x"):
        with pytest.raises(UsageError, match=r"PATH=LOW\.\.HIGH"):
            parse_range(text)
    for text in ("a.b=10..1", "a.b=5..5", "a.b=2MB..100kB"):
        with pytest.raises(UsageError, match="the first end must be smaller than the second"):
            parse_range(text)


@pytest.mark.parametrize(
    ("ends", "low", "high", "unit"),
    [
        ("100kB/s..2MB/s", 100, 2000, "kB/s"),
        ("250ms..2m", 250, 120_000, "ms"),
        ("1/s .. 120/m", 1, 2, "/s"),
        ("5%..10%", 5, 10, "%"),
        ("4KiB..1MiB", 4, 1024, "KiB"),
        ("0..30s", 0, 30, "s"),
    ],
)
def test_range_ends_with_different_units_are_converted_to_a_single_unit(
    ends: str, low: int, high: int, unit: str
) -> None:
    assert parse_range(f"a.b={ends}") == ("a.b", pytest.approx(low), pytest.approx(high), unit)


def test_a_grid_is_a_list_of_values_for_each_path(tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    assert parse_grid("a.b: [1, 2]\nc: [no]", file) == [Varied("a.b", (1, 2)), Varied("c", ("no",))]
    for text in ("a: 1", "[1]", "a: []"):
        with pytest.raises(UsageError, match="--grid"):
            parse_grid(text, file)
