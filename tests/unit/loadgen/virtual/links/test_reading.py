from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engine.pacing import ReadBudget, quantum_bytes
from loadgen.virtual.links.reading import NEVER, UNLIMITED, Paced

if TYPE_CHECKING:
    from loadgen.virtual.links.reading import Reader

RATES = st.floats(300, 2_000_000)


def real_reads(rate: float, arrivals: list[tuple[float, int]], until: float) -> int:
    """Return what a client with a ReadBudget has read, timer by timer."""
    budget, now, visible, read = ReadBudget(rate, 0.0), 0.0, 0, 0
    pending = list(arrivals)
    while now <= until + 1e-9:
        while pending and pending[0][0] <= now + 1e-9:
            visible += pending.pop(0)[1]
        if read == visible:
            if not pending:
                break
            now = max(now, pending[0][0])
            continue
        size = min(max(1, budget.available_bytes(now)), visible - read)
        budget.spend(size)
        read += size
        now += budget.pause_seconds(now)
    return read


def drive(reader: Reader, arrivals: list[tuple[float, int]], until: float) -> int:
    """Return what a reader has read that is asked at arrivals and at the end alone."""
    read = visible = 0
    for when, size in arrivals:
        read = reader.read_by(when, read, visible)
        visible += size
        read = reader.read_by(when, read, visible)
    return reader.read_by(until, read, visible)


@given(
    RATES,
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 400_000)), min_size=1, max_size=6),
    st.floats(0, 30),
)
def test_a_paced_reader_reads_as_a_read_budget_lets_a_client_read(
    rate: float, arrivals: list[tuple[float, int]], later: float
) -> None:
    # Given
    arrivals = sorted(arrivals)
    until = arrivals[-1][0] + later
    # When
    found, real = drive(Paced(rate, 0.0), arrivals, until), real_reads(rate, arrivals, until)
    # Then: at most a quantum apart, where a timer of one falls on the very moment
    assert abs(found - real) <= quantum_bytes(rate) + 1


@given(st.floats(5_000, 2_000_000), st.integers(1, 3_000_000))
def test_over_ten_seconds_the_rate_is_right_within_a_hundredth(rate: float, offset: int) -> None:
    # Given
    reader, visible = Paced(rate, 0.0), int(rate * 40) + offset
    # When
    at_ten = reader.read_by(10.0, 0, visible)
    at_thirty = reader.read_by(30.0, at_ten, visible)
    # Then
    assert at_thirty - at_ten == pytest.approx(20 * rate, rel=0.01)


@given(RATES, st.integers(1, 3_000_000), st.integers(0, 500_000))
def test_at_the_foretold_moment_and_no_earlier_an_offset_is_read(
    rate: float, offset: int, more: int
) -> None:
    # Given
    reader, visible = Paced(rate, 0.0), offset + more
    # When
    when = reader.moment_of(offset, 0.0, 0, visible)
    # Then
    assert when is not None
    earlier = reader.read_by(when - 1e-6, 0, visible) if when > 1e-6 else 0
    assert earlier < offset
    assert reader.read_by(when, earlier, visible) >= offset


def test_what_is_not_there_has_no_moment() -> None:
    assert Paced(1000.0, 0.0).moment_of(11, 0.0, 0, 10) is None
    assert UNLIMITED.moment_of(11, 0.0, 0, 10) is None
    assert NEVER.moment_of(1, 0.0, 0, 10) is None


def test_who_never_reads_leaves_everything_and_who_is_unlimited_nothing() -> None:
    assert NEVER.read_by(1e9, 0, 10) == 0
    assert UNLIMITED.read_by(0.0, 0, 10) == 10
