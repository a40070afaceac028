import json
from dataclasses import dataclass, field
from enum import Enum

import pytest
from pydantic import BaseModel, Field

from client.schema import Bytes, CustomEnum, JsonSchema, Record, String


class Size(Enum):
    SMALL = 1


class Line(Record):
    item = String()
    size = CustomEnum(Size)
    raw = Bytes()


@dataclass
class Part:
    item: str
    sizes: list[Size] = field(default_factory=list)


@dataclass
class Order:
    customer: str
    part: Part | None = None


class Model(BaseModel):
    count: int = Field(default=1, alias="Count")


def test_a_record_is_encoded_as_compact_json() -> None:
    schema = JsonSchema(Line)
    line = Line(item="tea", size=Size.SMALL, raw=b"x")
    data = schema.encode(line)
    assert data == b'{"item":"tea","size":1,"raw":"x"}'
    assert schema.decode(data) == line


def test_a_dataclass_is_encoded_as_compact_json() -> None:
    schema = JsonSchema(Order)
    order = Order("anna", Part("tea", [Size.SMALL]))
    data = schema.encode(order)
    assert data == b'{"customer":"anna","part":{"item":"tea","sizes":[1]}}'
    assert schema.decode(data) == order


def test_a_pydantic_model_is_encoded_by_its_aliases() -> None:
    schema = JsonSchema(Model)
    data = schema.encode(Model(Count=2))
    assert data == b'{"Count":2}'
    assert schema.decode(data) == Model(Count=2)


def test_json_that_does_not_fit_the_class_is_refused() -> None:
    with pytest.raises(ValueError, match="customer"):
        JsonSchema(Order).decode(b'{"customer": 1}')


@pytest.mark.parametrize(("data", "error"), [(b"[1]", TypeError), (b"{", ValueError)])
def test_invalid_json_or_a_non_object_is_refused(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        JsonSchema(Line).decode(data)


def test_a_value_of_another_class_is_refused() -> None:
    with pytest.raises(TypeError, match="JsonSchema encodes Order, not dict: "):
        JsonSchema(Order).encode({"customer": "anna"})


def test_an_explicit_definition_is_used_in_schema_info() -> None:
    definition = {"type": "record", "name": "Order", "fields": []}
    info = JsonSchema(Order, definition).schema_info()
    assert info is not None
    assert json.loads(info.schema_data) == definition


def test_an_unsupported_class_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a Record, a dataclass or a pydantic model, not <cl"):
        JsonSchema(dict)
