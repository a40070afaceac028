"""Schemas decode their own encodings; Avro's bytes equal the official client's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

import pulsar.schema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import client.schema
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
def test_every_encoded_value_is_decoded_unchanged(schema, values, data) -> None:
    value = data.draw(values)
    assert schema.decode(schema.encode(value)) == value


READING = [schema for schema, _ in CASES]


@pytest.mark.parametrize("schema", READING, ids=str)
@given(data=st.binary(max_size=40))
def test_arbitrary_bytes_decode_to_a_value_or_a_value_or_type_error(schema, data) -> None:
    with suppress(ValueError, TypeError):
        schema.decode(data)


NOT_A_NUMBER = st.just(float("nan"))
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "Boolean": st.booleans(),
    "Integer": INT,
    "Long": LONG,
    "Float": st.floats(width=32, allow_nan=False) | NOT_A_NUMBER | INT,
    "Double": st.floats(allow_nan=False) | NOT_A_NUMBER,
    "Bytes": st.binary(max_size=5),
    "String": TEXT,
}
COLOURS = st.sampled_from(Colour)


@dataclass(frozen=True)
class Kind:
    """A field's type, and its values, for either package."""

    made: Callable[..., Any]
    values: st.SearchStrategy[Callable[[ModuleType], Any]]


@st.composite
def kinds(draw: st.DrawFn, name: str, depth: int) -> Kind:
    nested = ["Array", "Map", "Record"] if depth else []
    which = draw(st.sampled_from([*LEAVES, *nested]))
    if which == "Record":
        return draw(records(name, depth - 1))
    if which in LEAVES:
        values = LEAVES[which].map(lambda value: lambda _: value)
        return Kind(lambda s, **options: getattr(s, which)(**options), values)
    item = draw(kinds(name, depth - 1))
    if which == "Array":
        several = st.lists(item.values, max_size=3).map(
            lambda all: lambda s: [one(s) for one in all]
        )
    else:
        several = st.dictionaries(TEXT, item.values, max_size=3).map(
            lambda all: lambda s: {key: one(s) for key, one in all.items()}
        )
    return Kind(lambda s, **options: getattr(s, which)(item.made(s), **options), several)


@st.composite
def records(draw: st.DrawFn, name: str = "R", depth: int = 2) -> Kind:
    fields = {f"f{i}": draw(kinds(f"{name}_{i}", depth)) for i in range(draw(st.integers(1, 4)))}
    if draw(st.booleans()):
        values = COLOURS.map(lambda value: lambda _: value)
        fields["colour"] = Kind(lambda s, **options: s.CustomEnum(Colour, **options), values)
    required = {field: draw(st.booleans()) for field in fields}

    @cache
    def record(s: ModuleType) -> Any:
        parts = {field: one.made(s, required=required[field]) for field, one in fields.items()}
        return type(name, (s.Record,), parts)

    none = st.just(lambda _: None)
    each = {
        field: one.values if required[field] else none | one.values for field, one in fields.items()
    }
    values = st.fixed_dictionaries(each).map(
        lambda all: lambda s: record(s)(**{field: one(s) for field, one in all.items()})
    )
    return Kind(lambda s, **options: record(s)(**options), values)


@given(data=st.data())
def test_avro_encoding_equals_the_official_client_byte_for_byte(data: st.DataObject) -> None:
    kind = data.draw(records())
    value = data.draw(kind.values)
    theirs = pulsar.schema.AvroSchema(type(kind.made(pulsar.schema)))
    ours = AvroSchema(type(kind.made(client.schema)))
    encoded = ours.encode(value(client.schema))
    assert encoded == theirs.encode(value(pulsar.schema))
    assert ours.encode(ours.decode(encoded)) == encoded
    assert theirs.encode(theirs.decode(encoded)) == encoded
