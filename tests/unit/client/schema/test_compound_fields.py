from enum import Enum, IntEnum

import pytest

from client.schema import Array, Bytes, CustomEnum, Integer, Map, Record, String
from client.schema.fields import Element


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Line(Record):
    item = String()


def test_an_enum_field_accepts_members_names_and_values() -> None:
    field = CustomEnum(Level)
    found = [field.validate_type("level", one) for one in (Level.LOW, "LOW", 1)]
    assert found == [Level.LOW] * 3


def test_an_invalid_enum_value_is_refused_with_the_members() -> None:
    with pytest.raises(TypeError, match=r"level is one of Level \(LOW, HIGH\), not 'MID'"):
        CustomEnum(Level).validate_type("level", "MID")


def test_an_enum_field_of_another_class_is_refused() -> None:
    with pytest.raises(TypeError, match="CustomEnum takes an Enum, not 'LOW'"):
        CustomEnum("LOW")  # type: ignore[arg-type] - that it is refused is the point


@pytest.mark.parametrize("kind", [Line, Line()])
def test_a_record_class_equals_its_instance_in_arrays_and_maps(kind: Element) -> None:
    assert Array(kind).schema() == {"type": "array", "items": Line.schema()}
    assert Map(kind).schema() == {"type": "map", "values": Line.schema()}


def test_an_array_of_a_non_field_is_refused() -> None:
    with pytest.raises(TypeError, match="an Array's type is a Record or a Field such as"):
        Array(int)  # type: ignore[arg-type] - that it is refused is the point


def test_an_array_contains_the_full_definition_of_its_enum() -> None:
    # The official client writes "enum", which is no Avro type
    class Plain(Enum):
        A = "A"

    found = Array(CustomEnum(Plain)).schema()
    assert found == {
        "type": "array",
        "items": {"type": "enum", "name": "Plain", "symbols": ["A"]},
    }


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        (Integer(), "1", "f is int, not '1'"),
        (Bytes(), 1, "f is bytes or str, not 1"),
        (Array(Integer()), ["1"], "f has items that are int, not '1'"),
        (Map(Integer()), {1: 1}, "f has keys that are str, not 1"),
        (Map(Integer()), {"a": "1"}, "f has values that are int, not '1'"),
    ],
)
def test_a_value_of_another_type_is_refused_with_a_sentence(field, value, sentence) -> None:
    with pytest.raises(TypeError, match=sentence):
        field.validate_type("f", value)


def test_a_default_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="default is int, not 'one'"):
        Integer(default="one")
