"""The schema for editors equals the models' schema, and accepts shipped documents."""

import re
from importlib import resources
from typing import Any

import pytest
import yaml

from loadgen.documents.reading import read_document, shipped
from loadgen.documents.schema import SCHEMA_NAME, document_schema, schema_text

SCHEMA = document_schema()


def test_the_shipped_schema_equals_the_schema_of_the_models() -> None:
    shipped_schema = resources.files("loadgen.documents").joinpath(SCHEMA_NAME)
    remedy = f"run: loadgen scenarios schema > loadgen/documents/{SCHEMA_NAME}"
    assert shipped_schema.read_text(encoding="utf-8") == schema_text(), remedy


def faults(value: Any, schema: Any) -> list[str]:
    """Return a value's violations of a schema; for a union, of the best-fitting branch."""
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if branches := schema.get("anyOf"):
        return min((faults(value, each) for each in branches), key=len)
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        found = [key for key in value if key not in known]
        return found + [x for key in value.keys() & known for x in faults(value[key], known[key])]
    if isinstance(value, list):
        return [each for one in value for each in faults(one, schema.get("items", {}))]
    if "const" in schema or "enum" in schema:
        return [] if value in schema.get("enum", [schema.get("const")]) else [str(value)]
    if isinstance(value, str):
        right = schema.get("type", "string") == "string" and re.search(
            schema.get("pattern", ""), value
        )
        return [] if right else [value]
    return []


@pytest.mark.parametrize("name", shipped())
def test_the_schema_accepts_every_shipped_scenario(name: str) -> None:
    written = yaml.safe_load(read_document(name).written)
    assert faults(written, SCHEMA) == []
    assert faults(read_document(name).resolved(), SCHEMA) in ([], ["publishers", "size"] * 2)


def test_the_schema_rejects_unknown_keys_and_invalid_values() -> None:
    group = {"name": "a", "do": "list", "evry": 1, "after": "5 parsecs"}
    assert faults({"clients": [group]}, SCHEMA) == ["evry", "5 parsecs"]
    assert faults({"clients": [{"do": "discover", "library": "x"}]}, SCHEMA) == ["x"]


def test_the_schema_requires_no_key_and_bounds_the_measure_phase() -> None:
    assert "required" not in str(SCHEMA)
    assert SCHEMA["$defs"]["Phases"]["properties"]["measure"]["anyOf"][0] == {
        "exclusiveMinimum": 0,
        "maximum": 86_400,
        "type": "number",
    }
