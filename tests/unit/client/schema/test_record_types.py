"""A record's attributes for type checkers: ``make check`` runs mypy on this file."""

from enum import Enum
from typing import assert_type

import pytest

from client.schema import (
    Array,
    Boolean,
    Bytes,
    CustomEnum,
    Double,
    Field,
    Integer,
    Long,
    Map,
    Record,
    String,
)


class Size(Enum):
    SMALL = 1
    LARGE = 2


class Line(Record):
    item = String(required=True)
    count = Integer()


class Own(Field):
    """A program's own."""


class Order(Record):
    id = Integer(required=True)
    cents = Long()
    customer = String()
    weight = Double()
    seal = Bytes()
    paid = Boolean()
    size = CustomEnum(Size)
    first = Line()
    lines = Array(Line())
    notes = Array(String)
    counts = Map(Integer())
    groups = Map(Array(Line))
    own = Own()


def test_record_attributes_have_the_types_of_their_values() -> None:
    order = Order(id=1)
    assert_type(order.id, int)
    assert_type(order.cents, int)
    assert_type(order.customer, str)
    assert_type(order.weight, float)
    assert_type(order.seal, bytes)
    assert_type(order.paid, bool)
    assert_type(order.size, Size)
    assert_type(order.first.count, int)
    assert_type(order.lines, list[Line])
    assert_type(order.notes, list[str])
    assert_type(order.counts, dict[str, int])
    assert_type(order.groups, dict[str, list[Line]])
    assert order.id + 1 == 2


def test_attributes_accept_convertible_values() -> None:
    order = Order(id=1)
    order.id = 5
    order.id += 1
    order.cents = None
    order.customer = b"anna"
    order.weight = 3
    order.size = "LARGE"
    order.lines = [Line(item="tea")]
    order.lines.append(Line(item="milk"))
    assert (order.id, order.customer, order.size) == (6, "anna", Size.LARGE)


def test_class_attributes_are_the_fields() -> None:
    assert_type(Order.id, Integer)
    assert Order.id.type() == "int"


def test_type_checkers_refuse_the_values_that_a_record_refuses() -> None:
    order = Order(id=1)
    with pytest.raises(TypeError):
        order.id = "x"  # type: ignore[assignment]
    with pytest.raises(TypeError):
        order.lines = ["x"]  # type: ignore[list-item]
    with pytest.raises(TypeError):
        order.id + "x"  # type: ignore[operator]
