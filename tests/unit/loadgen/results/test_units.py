"""Values in expectations, and displayed figures, with units."""

import math

import pytest

from loadgen.errors import UsageError
from loadgen.results.units import Unit, in_words, value_of


@pytest.mark.parametrize(
    ("unit", "written", "value"),
    [
        (Unit.SECONDS, "250ms", 0.25),
        (Unit.SECONDS, "2m", 120.0),
        (Unit.SECONDS, "1.5min", 90.0),
        (Unit.SECONDS, "1m30s", 90.0),
        (Unit.SECONDS, "1h 2m 3s 4ms", 3723.004),
        (Unit.SHARE, "0.1%", 0.001),
        (Unit.COUNT, "1,000", 1000.0),
        (Unit.BYTES, "1GiB", float(1 << 30)),
        (Unit.RATE, "2.5/s", 2.5),
    ],
)
def test_a_value_is_read_in_its_unit(unit: Unit, written: str, value: float) -> None:
    assert value_of(unit, written) == value


@pytest.mark.parametrize(
    ("unit", "written"),
    [
        *((Unit.SECONDS, each) for each in ("", "2", "30s1m", "1m1m", "2 weeks", "1GiB", "-1s")),
        *((Unit.SHARE, each) for each in ("0.1", "101%", "1")),
        *((Unit.COUNT, each) for each in ("0.5", "1%", "many")),
        *((Unit.RATE, each) for each in ("100", "100%", "100/fortnight")),
        (Unit.BYTES, "much"),
    ],
)
def test_an_invalid_value_of_a_unit_is_refused(unit: Unit, written: str) -> None:
    with pytest.raises((ValueError, UsageError)):
        value_of(unit, written)


@pytest.mark.parametrize(
    ("unit", "value", "words"),
    [
        (Unit.SECONDS, math.inf, "never"),
        (Unit.SECONDS, math.nan, "-"),
        (Unit.COUNT, None, "-"),
        (Unit.SECONDS, 0.0026, "2.6 ms"),
        (Unit.SECONDS, 0.25, "250 ms"),
        (Unit.SECONDS, 1.25, "1.25 s"),
        (Unit.BYTES, 2**20, "1.0 MB"),
        (Unit.SHARE, 0.125, "12.5 %"),
        (Unit.SHARE, 0.001, "0.1 %"),
        (Unit.SHARE, 1.0, "100 %"),
        (Unit.SHARE, 29_999 / 30_000, "99.99 %"),
        (Unit.COUNT, 12345, "12,345 requests"),
        (Unit.RATE, 12.5, "12.5/s"),
    ],
)
def test_a_figure_is_shown_with_its_unit(unit: Unit, value: float | None, words: str) -> None:
    assert in_words(unit, value, "requests") == words
