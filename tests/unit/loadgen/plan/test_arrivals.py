"""Start times of clients: ordered, complete, and reproducible by seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from loadgen.plan.arrivals import Arrivals

ARRIVALS = TypeAdapter(Arrivals)


@pytest.mark.parametrize(
    ("arrive", "moments"),
    [
        ({"kind": "at-once"}, [0, 0, 0, 0, 0]),
        ({"kind": "constant", "rate": "2/s"}, [0, 0.5, 1, 1.5, 2]),
        ({"kind": "ramp", "from": 0, "to": "2/s", "over": "2s"}, [0, 2**0.5, 2, 2.5, 3]),
        ({"kind": "step", "rates": [1, "2/s"], "each": "2s"}, [0, 1, 2, 2.5, 3]),
        ({"kind": "burst", "count": 2, "every": "1m"}, [0, 0, 60, 60, 120]),
        ({"kind": "trace", "at": [0, 1, "3s"]}, [0, 1, 3, 4.5, 5.5]),
        ({"kind": "concurrency", "count": 2}, [0, 0]),
    ],
)
def test_each_kind_of_arrivals_yields_its_start_times(arrive: dict, moments: list[float]) -> None:
    assert ARRIVALS.validate_python(arrive).moments(5, 1) == pytest.approx(moments)


@given(seed=st.integers(0, 99), rate=st.floats(0.1, 100))
def test_poisson_arrivals_are_ordered_and_depend_on_the_seed(seed: int, rate: float) -> None:
    poisson = ARRIVALS.validate_python({"kind": "poisson", "rate": rate})
    assert poisson.moments(30, seed) == sorted(poisson.moments(30, seed))
    assert poisson.moments(30, seed) != poisson.moments(30, seed + 1)


def test_a_trace_with_descending_times_is_refused() -> None:
    with pytest.raises(ValidationError, match="must be in ascending order"):
        ARRIVALS.validate_python({"kind": "trace", "at": [0, 2, 1]})


def test_serialized_arrivals_are_read_back_unchanged() -> None:
    ramp = ARRIVALS.validate_python({"kind": "ramp", "from": 1, "to": 2, "over": 3})
    assert ARRIVALS.validate_json(ARRIVALS.dump_json(ramp)) == ramp
