from enum import Enum
from typing import Any

import pytest

from client.schema import Array, CustomEnum, Integer, Map, Record, String
from client.schema.record import as_avro


class Size(Enum):
    SMALL = 1


class Line(Record):
    item = String()
    count = Integer(default=1)


class Order(Record):
    customer = String(required=True)
    line = Line()
    lines = Array(Line())
    by_name = Map(Array(Line()))
    sizes = Array(CustomEnum(Size))


def test_nested_dicts_become_records() -> None:
    order = Order(
        line={"item": "tea"}, lines=[{"count": 2}], by_name={"a": [{"item": "mint"}]}, sizes=[1]
    )
    made: Any = order
    assert made.line == Line(item="tea", count=1)
    assert made.lines == [Line(count=2)]
    assert made.by_name == {"a": [Line(item="mint")]}
    assert made.sizes == [Size.SMALL]


def test_a_default_record_is_not_shared_between_instances() -> None:
    one: Any = Order()
    one.line.item = "tea"
    other: Any = Order()
    assert other.line.item is None


def test_setting_an_unknown_field_is_refused() -> None:
    with pytest.raises(AttributeError, match="Line has no field size: item, count"):
        Line().size = 1  # type: ignore[attr-defined] - that it is refused is the point


def test_unknown_constructor_arguments_are_ignored() -> None:
    assert Line(item="tea", colour="green") == Line(item="tea")


def test_records_are_equal_by_their_values() -> None:
    assert Line(item="tea") == Line(item="tea")
    assert Line(item="tea") != Line(item="mint")
    assert Line() != "Line"


def test_the_repr_of_a_record_shows_its_values() -> None:
    assert repr(Line(item="tea")) == "Line(item='tea', count=1)"


def test_a_recursive_record_is_defined_once() -> None:
    class Node(Record):
        text = String()

    Node._fields["next"] = Node()
    definition = Node.schema()
    assert definition["fields"][1] == {"name": "next", "type": ["null", "Node"]}


def test_field_names_may_equal_method_names() -> None:
    class Odd(Record):
        type = String()  # type: ignore[assignment] - it is a field here
        values = Integer()

    odd = Odd(type="a", values=1)
    assert as_avro(odd) == {"type": "a", "values": 1}


def test_as_avro_returns_enum_names_and_dicts() -> None:
    found = as_avro(Order(customer="anna", line=None, lines=[{}], sizes=[Size.SMALL]))
    assert found == {
        "customer": "anna",
        "line": None,
        "lines": [{"item": None, "count": 1}],
        "by_name": None,
        "sizes": ["SMALL"],
    }


def test_a_default_record_is_a_dict_in_the_definition() -> None:
    class Basket(Record):
        line = Line(default=Line(item="tea"), required_default=True, required=True)

    (field,) = Basket.schema()["fields"]
    assert field["default"] == {"item": "tea", "count": 1}
