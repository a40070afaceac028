"""What a schema encodes it decodes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.schema import (
    Array,
    AvroSchema,
    Boolean,
    CustomEnum,
    Double,
    Integer,
    JsonSchema,
    Long,
    Map,
    Record,
    String,
)
from client.schema.schema import Schema, StringSchema


class Colour(Enum):
    RED = "RED"
    GREEN = "GREEN"


class Line(Record):
    item = String()
    colour = CustomEnum(Colour)


class Order(Record):
    flag = Boolean(required=True)
    small = Integer()
    big = Long()
    price = Double()
    line = Line()
    lines = Array(Line())
    by_name = Map(Array(Integer()))


@dataclass
class Part:
    item: str
    colour: Colour | None = None


@dataclass
class Whole:
    flag: bool
    number: int | None
    price: float
    parts: list[Part]
    by_name: dict[str, Part]
    next: Whole | None = None


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
DOUBLE = st.floats(allow_nan=False, allow_infinity=False)
LINES = st.builds(Line, item=st.none() | TEXT, colour=st.none() | st.sampled_from(Colour))
ORDERS = st.builds(
    Order,
    flag=st.booleans(),
    small=st.none() | INT,
    big=st.none() | LONG,
    price=st.none() | DOUBLE,
    line=st.none() | LINES,
    lines=st.none() | st.lists(LINES, max_size=3),
    by_name=st.none() | st.dictionaries(TEXT, st.lists(INT, max_size=3), max_size=3),
)
PARTS = st.builds(Part, TEXT, st.none() | st.sampled_from(Colour))
WHOLES = st.deferred(
    lambda: st.builds(
        Whole,
        st.booleans(),
        st.none() | LONG,
        DOUBLE,
        st.lists(PARTS, max_size=3),
        st.dictionaries(TEXT, PARTS, max_size=3),
        st.none() | WHOLES,
    )
)
CASES: list[tuple[Schema, st.SearchStrategy[Any]]] = [
    (StringSchema(), TEXT),
    (JsonSchema(Order), ORDERS),
    (AvroSchema(Order), ORDERS),
    (JsonSchema(Whole), WHOLES),
    (AvroSchema(Whole), WHOLES),
]


@pytest.mark.parametrize(("schema", "values"), CASES, ids=lambda one: str(one)[:12])
@given(data=st.data())
def test_what_is_encoded_is_decoded(
    schema: Schema, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    # Given
    value = data.draw(values)
    # Then
    assert schema.decode(schema.encode(value)) == value


READING = [schema for schema, _ in CASES]


@pytest.mark.parametrize("schema", READING, ids=str)
@given(data=st.binary(max_size=40))
def test_bytes_that_nobody_encoded_are_a_value_or_one_of_two_errors(
    schema: Schema, data: bytes
) -> None:
    with suppress(ValueError, TypeError):
        schema.decode(data)
