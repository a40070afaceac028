"""The bracket holds the limit of anything monotone, from either side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.sweeps.bisection import bisect
from loadgen.sweeps.variation import Range


@given(limit=st.integers(1, 999), rising=st.booleans())
def test_whole_numbers_are_bracketed_by_one(limit: int, *, rising: bool) -> None:
    # Given
    wanted = Range("k", 1, 1000)
    # When
    found = bisect(wanted, lambda value: (value > limit) is rising, precision=0.0)
    # Then
    passes, fails = (limit + 1, limit) if rising else (limit, limit + 1)
    assert (found.passes, found.fails) == (passes, fails)
    assert found.kind == ("smallest" if rising else "highest")
    assert len(found.probes) <= 2 + 20
    assert all(isinstance(value, int) for value, _ in found.probes)


@given(limit=st.floats(0.02, 9.98))
def test_a_bracket_is_no_wider_than_its_precision(limit: float) -> None:
    # When
    found = bisect(Range("k", 0.01, 9.99), lambda value: float(value) < limit, precision=0.05)
    # Then
    assert isinstance(found.passes, float)
    assert isinstance(found.fails, float)
    assert found.passes < limit <= found.fails
    assert found.fails - found.passes <= 0.05 * found.passes


@pytest.mark.parametrize(("passing", "kind"), [(True, "all"), (False, "none")])
def test_ends_that_agree_have_no_limit_between_them(kind: str, *, passing: bool) -> None:
    # When
    found = bisect(Range("k", 1, 9), lambda _: passing, precision=0.05)
    # Then
    assert found.kind == kind
    assert (found.passes, found.fails) == (None, None)
    assert len(found.probes) == 2
