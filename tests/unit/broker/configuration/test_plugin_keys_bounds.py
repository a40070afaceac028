"""Bounds of the number and size of a listing request's properties."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.configuration.plugin_keys import (
    UNBOUNDED,
    PropertyBounds,
    TooManyPropertiesError,
    as_mapping,
)

BOUNDS = PropertyBounds(max_properties=3, max_bytes=12)


@pytest.mark.parametrize(
    "fits", [{}, {"a": "1", "b": "2", "c": "3"}, {"key": "123456789"}, {"k": "\u00e9" * 5}]
)
def test_properties_within_the_bounds_are_accepted(fits: dict[str, str]) -> None:
    BOUNDS.check(fits)


@pytest.mark.parametrize(
    ("beyond", "told"),
    [
        (
            dict.fromkeys("abcd", ""),
            "4 properties: a listing request may have 3 (floodgateMaxListingProperties)",
        ),
        (
            {"key": "1234567890"},
            "13 bytes of properties: a listing request may have 12 "
            "(floodgateMaxListingPropertiesBytes)",
        ),
        (
            {"k": "\u00e9" * 6},
            "13 bytes of properties: a listing request may have 12 "
            "(floodgateMaxListingPropertiesBytes)",
        ),
    ],
)
def test_properties_beyond_a_bound_are_refused_with_the_bound_and_its_key(beyond, told) -> None:
    with pytest.raises(TooManyPropertiesError) as caught:
        BOUNDS.check(beyond)
    assert str(caught.value) == told


def test_unbounded_properties_may_have_any_number_and_size() -> None:
    UNBOUNDED.check({str(number): "x" * 100 for number in range(10_000)})


def test_a_lone_surrogate_in_a_property_is_measured_without_error() -> None:
    BOUNDS.check({"k": "\ud800"})


def test_the_last_value_of_a_duplicate_property_key_counts() -> None:
    pairs = [pb.KeyValue(key="a", value="1"), pb.KeyValue(key="a", value="2")]
    assert as_mapping(pairs) == {"a": "2"}
