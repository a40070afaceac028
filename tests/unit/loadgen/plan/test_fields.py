"""A field's type determines the unit."""

import pytest
from pydantic import TypeAdapter, ValidationError

from loadgen.plan.fields import Bytes, Count, Duration, Moment, Rate, Share, Speed


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (Speed, "100kB/s", 100_000), (Speed, "0", 0), (Bytes, "64KiB", 65_536),
        (Duration, "30s", 30), (Moment, "250ms", 0.25), (Moment, "5m", 300), (Duration, "7", 7),
        (Duration, "1.5min", 90), (Moment, "2h", 7200), (Duration, "1_000", 1000),
        (Rate, "50/s", 50), (Rate, "120/min", 2), (Rate, "3", 3), (Rate, 0.5, 0.5),
        (Share, "10%", 0.1), (Share, "0.5 %", 0.005), (Share, "0.2", 0.2),
        (Count, "010", 10), (Count, "1_000", 1000), (Count, "+7", 7), (Count, "5.0", 5),
    ],
)  # fmt: skip
def test_values_with_units_are_converted_to_the_unit_of_their_field(
    field, text: str | float, value: float
) -> None:
    assert TypeAdapter(field).validate_python(text) == value


@pytest.mark.parametrize(
    ("field", "text", "sentence"),
    [
        (Moment, "5 d", "must be a time such as 30s, 5m or 250ms"),
        (Moment, "1:30", "must be a time"), (Moment, "nan", "must be a time"),
        (Moment, "-.inf", "must be a time"), (Rate, "50/d", "must be a rate such as 50/s"),
        (Share, "much", "must be a share such as 10%"), (Share, "101%", "less than or equal to 1"),
        (Bytes, "1TB", "must be a size such as 64KiB"), (Speed, "64KiB/m", "must be a speed such"),
        (Count, "0x10", "valid integer"), (Count, True, "must be a number or a text"),
        (Moment, True, "must be a number or a text"), (Duration, "0s", "greater than 0"),
    ],
)  # fmt: skip
def test_a_value_of_another_unit_or_type_is_refused(field, text: str | bool, sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        TypeAdapter(field).validate_python(text)
