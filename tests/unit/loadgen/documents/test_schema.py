"""The schema for editors is that of the models, and knows what shipped documents have."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
import yaml

from loadgen.documents.reading import shipped
from loadgen.documents.schema import SCHEMA_NAME, document_schema


def test_the_schema_that_is_shipped_is_the_models() -> None:
    shipped_schema = resources.files("loadgen.documents").joinpath(SCHEMA_NAME)
    remedy = f"run: loadgen scenarios schema > loadgen/documents/{SCHEMA_NAME}"
    assert json.loads(shipped_schema.read_text(encoding="utf-8")) == document_schema(), remedy


def unknown_keys(value: Any, schema: Any, definitions: dict[str, Any]) -> list[str]:
    """Keys of a value that no branch of its schema has."""
    while "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")]
    branches = schema.get("anyOf", [schema])
    if branches != [schema]:
        return min((unknown_keys(value, each, definitions) for each in branches), key=len)
    if isinstance(value, list):
        items = schema.get("items", {})
        return [each for one in value for each in unknown_keys(one, items, definitions)]
    if not isinstance(value, dict):
        return []
    known = schema.get("properties", {})
    open_to_all = schema.get("additionalProperties", "properties" not in schema)
    found = [key for key in value if key not in known and not open_to_all]
    for key in value.keys() & known.keys():
        found += unknown_keys(value[key], known[key], definitions)
    return found


@pytest.mark.parametrize("name", shipped())
def test_an_editor_knows_every_key_of_a_shipped_document(name: str) -> None:
    # Given
    schema = document_schema()
    definitions = schema["$defs"]
    document = yaml.safe_load(shipped()[name].read_text(encoding="utf-8"))
    load = definitions[f"load of {document.get('kind', 'discovery')}"]
    # When, Then
    assert unknown_keys(document, schema, definitions) == []
    assert unknown_keys(document.get("load", {}), load, definitions) == []
    assert unknown_keys({"clinets": 1}, load, definitions) == ["clinets"]
