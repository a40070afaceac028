from __future__ import annotations

import pytest

from loadgen.analysis.agreement import agreements
from loadgen.analysis.compare import Comparison, Row, Side
from loadgen.analysis.measures import Unit


def comparison(*rows: tuple[str, Unit, float, float], unlike: tuple[str, ...] = ()) -> Comparison:
    found = [
        Row(name, unit, [Side(each, each, each, 3) for each in values], [None, None])
        for name, unit, *values in rows
    ]
    return Comparison([], found, list(unlike), [], 4)


@pytest.mark.parametrize(
    ("unit", "first", "second", "agrees"),
    [
        (Unit.COUNT, 1000, 1020, True),
        (Unit.COUNT, 1000, 1021, False),
        (Unit.COUNT, 0, 0, True),
        (Unit.COUNT, 0, 1, False),
        (Unit.BYTES, 1000, 979, False),
        (Unit.SECONDS, 2.0, 2.1, True),
        (Unit.SECONDS, 2.0, 2.12, False),
        (Unit.SECONDS, 0.001, 0.021, True),  # within 20 ms
        (Unit.SECONDS, 0.001, 0.022, False),
    ],
)
def test_medians_agree_within_a_share_and_short_times_within_milliseconds(
    unit: Unit, first: float, second: float, agrees: bool
) -> None:
    (found,) = agreements(comparison(("x", unit, first, second)))
    assert found.agrees is agrees


def test_what_depends_on_how_a_server_is_made_is_left_out() -> None:
    rows = [
        (name, Unit.BYTES, 1.0, 2.0)
        for name in (
            "refused: x memory limit exceeded",
            "broker: memory over idle",
            "broker: unread at most",
            "broker: processor time",
            "response p9999",
            "broker: direct held at most",
        )
    ]
    assert [each.row.figure for each in agreements(comparison(*rows))] == [
        "refused: x memory limit exceeded",
        "broker: direct held at most",
    ]
