"""A rate admits a second's requests immediately, plus one, and no more in the long run."""

from hypothesis import given
from hypothesis import strategies as st

from limiter.token_bucket import Rate
from tests.support.clocks.counting_clock import CountingClock


def test_the_requests_of_a_second_plus_1_pass_immediately_as_in_a_real_broker() -> None:
    rate = Rate(5.0, CountingClock())
    found = [rate.take() for _ in range(9)]
    assert found == [True] * 6 + [False] * 3


@given(
    a_second=st.sampled_from([0.5, 1.0, 5.0, 1000.0]),
    pauses=st.lists(st.floats(0, 3), max_size=40),
)
def test_a_rate_is_never_exceeded_by_more_than_its_burst(a_second, pauses) -> None:
    clock = CountingClock()
    rate, began, taken = Rate(a_second, clock), clock.now(), 0
    for pause in pauses:
        clock.advance(pause)
        for _ in range(3):
            taken += rate.take()
        assert taken <= a_second * (clock.now() - began + 1) + 1 + 1e-6
