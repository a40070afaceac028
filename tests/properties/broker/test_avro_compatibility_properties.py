"""Laws of definitions' compatibility."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broker.schemas.avro.definition import (
    IncompatibleDefinitionsError,
    check,
    read,
    reads,
    shown,
    written,
)

PRIMITIVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "string"])
TYPES = st.recursive(
    PRIMITIVES,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda values: {"type": "map", "values": values}, inner),
        st.just(["null", "int"]),
    ),
    max_leaves=4,
)


@st.composite
def records(draw: Any) -> bytes:
    """The definition of a record with a few fields of a few names."""
    names = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4))
    fields = [{"name": name, "type": draw(TYPES)} for name in names]
    return json.dumps({"type": "record", "name": "A", "fields": fields}).encode()


def compatible(new: bytes, old: bytes, strategy: str) -> bool:
    try:
        check(read(new), [read(old)], strategy)
    except IncompatibleDefinitionsError:
        return False
    return True


@given(records())
def test_every_definition_is_compatible_with_itself(definition: bytes) -> None:
    assert reads(read(definition), read(definition))


@given(records(), records())
def test_full_compatibility_is_backward_and_forward_compatibility(new: bytes, old: bytes) -> None:
    backward, forward = compatible(new, old, "BACKWARD"), compatible(new, old, "FORWARD")
    assert compatible(new, old, "FULL") is (backward and forward)
    assert backward is compatible(old, new, "FORWARD")


@given(records())
def test_a_definition_is_unchanged_by_showing_and_reading(definition: bytes) -> None:
    once = read(definition)
    again = read(shown(once).encode())
    assert written(again) == written(once)
