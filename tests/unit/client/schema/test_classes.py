from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import avro.schema
import pytest
from pydantic import BaseModel, Field

from client.schema.classes import derived, is_described
from client.schema.record import Record

Name = NewType("Name", str)


class Size(Enum):
    SMALL = 1


@dataclass
class Line:
    item: str
    sizes: list[Size]


@dataclass
class Node:
    text: str
    next: Node | None = None


@dataclass
class Order:
    customer: Name
    count: Annotated[int, "at least one"] = 1
    price: float | None = None
    note: str | None = "none"
    paid: bool = False
    raw: bytes = b""
    size: Size = Size.SMALL
    kind: Literal["a", "b"] = "a"
    line: Line | None = None
    lines: tuple[Line, ...] = ()
    by_name: dict[str, list[int]] = field(default_factory=dict)
    made: float = field(default_factory=float)


@dataclass
class Times:
    at: datetime
    on: date
    by: UUID


class Model(BaseModel):
    item: str
    count: int = Field(default=1, alias="Count")
    tags: list[str] = Field(default_factory=list)


def test_a_dataclass_is_converted_to_an_avro_record() -> None:
    found = derived(Order, as_json=True)
    line = {
        "type": "record",
        "name": "Line",
        "fields": [
            {"name": "item", "type": "string"},
            {"name": "sizes", "type": {"type": "array", "items": "Size"}},
        ],
    }
    assert found.definition == {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "customer", "type": "string"},
            {"name": "count", "default": 1, "type": "long"},
            {"name": "price", "default": None, "type": ["null", "double"]},
            {"name": "note", "default": "none", "type": ["string", "null"]},
            {"name": "paid", "default": False, "type": "boolean"},
            {"name": "raw", "type": "bytes"},
            {
                "name": "size",
                "default": "SMALL",
                "type": {"type": "enum", "name": "Size", "symbols": ["SMALL"]},
            },
            {"name": "kind", "default": "a", "type": "string"},
            {"name": "line", "default": None, "type": ["null", line]},
            {"name": "lines", "type": {"type": "array", "items": "Line"}},
            {
                "name": "by_name",
                "default": {},
                "type": {"type": "map", "values": {"type": "array", "items": "long"}},
            },
            {"name": "made", "type": "double"},
        ],
    }
    avro.schema.make_avsc_object(found.definition)


def test_a_pydantic_model_is_converted_to_an_avro_record() -> None:
    found = derived(Model, as_json=True)
    assert found.definition == {
        "type": "record",
        "name": "Model",
        "fields": [
            {"name": "item", "type": "string"},
            {"name": "Count", "default": 1, "type": "long"},
            {"name": "tags", "default": [], "type": {"type": "array", "items": "string"}},
        ],
    }
    assert found.read is None


def test_a_recursive_class_is_defined_once() -> None:
    found = derived(Node, as_json=True)
    assert found.definition["fields"][1] == {
        "name": "next",
        "default": None,
        "type": ["null", "Node"],
    }


def test_times_are_strings_in_json_and_logical_types_in_avro() -> None:
    kinds = [
        [one["type"] for one in derived(Times, as_json=as_json).definition["fields"]]
        for as_json in (True, False)
    ]
    assert kinds == [
        ["string"] * 3,
        [
            {"type": "long", "logicalType": "timestamp-micros"},
            {"type": "int", "logicalType": "date"},
            {"type": "string", "logicalType": "uuid"},
        ],
    ]


def test_enum_names_are_read_back_as_enum_members() -> None:
    read = derived(Order, as_json=False).read
    assert read is not None
    line = {"item": "tea", "sizes": ["SMALL"]}
    found = read({"customer": "a", "size": "SMALL", "line": line, "lines": [line], "price": None})
    whole = {"item": "tea", "sizes": [Size.SMALL]}
    assert found == {
        "customer": "a",
        "size": Size.SMALL,
        "line": whole,
        "lines": [whole],
        "price": None,
    }


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (complex, "Odd.one: a schema has no type for <class 'complex'>: take another type, or"),
        (set[int], "Odd.one: a schema has no type for set"),
        (dict[int, str], "Odd.one: a schema has no type for dict"),
        (list, "Odd.one: a schema has no type for <class 'list'>"),
        (dict, "Odd.one: a schema has no type for <class 'dict'>"),
        (Decimal, "Odd.one: a schema has no type for <class 'decimal.Decimal'>"),
        (Size | int | None, "Odd.one: in a union an enum stands only with None"),
    ],
)
def test_an_unsupported_field_type_is_refused_with_its_name(kind: Any, sentence: str) -> None:
    odd = dataclass(type("Odd", (), {"__annotations__": {"one": kind}}))
    with pytest.raises(TypeError, match=sentence):
        derived(odd, as_json=False)


def test_two_classes_of_the_same_name_are_refused() -> None:
    other = dataclass(type("Line", (), {"__annotations__": {"one": int}}))
    both = dataclass(type("Both", (), {"__annotations__": {"a": Line, "b": other}}))
    with pytest.raises(TypeError, match="two classes that are named Line: rename one of them"):
        derived(both, as_json=True)


@pytest.mark.parametrize(
    ("kind", "described"),
    [(Order, True), (Model, True), (Record, False), (dict, False), (Order("a"), False)],
)
def test_only_dataclasses_and_models_are_described(kind: object, described: bool) -> None:
    assert is_described(kind) is described
