from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadgen.transfer.low_water import LowWater


@given(st.permutations(range(5, 25)), st.integers(0, 20))
def test_the_mark_is_the_first_number_that_has_not_ended(order: list[int], ended: int) -> None:
    # Given
    told: list[int] = []
    water = LowWater(5, told.append)
    # When
    for number in order[:ended]:
        water.add(number)
    # Then
    left = set(range(5, 26)) - set(order[:ended])
    assert water.mark == min(left)
    assert told == sorted(set(told))
