"""The JSON schema of scenario documents, for editors, generated from the pydantic models.

The schema is laxer than the models: a document that extends another may omit required keys.
"""

from __future__ import annotations

import json
from typing import Any

from loadgen.documents.model import Document
from loadgen.documents.server_keys import known_keys

SCHEMA_NAME = "scenario.schema.json"
_LEFT_OUT = ("discriminator", "required", "title")
_WORDS = {"oneOf": "anyOf", "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum"}
"""JSON schema's words for pydantic's; lax branches of a union may match together."""


def document_schema() -> dict[str, Any]:
    """Return the JSON schema of scenario documents."""
    schema: dict[str, Any] = _relaxed(Document.model_json_schema())
    definitions = schema.pop("$defs")
    for role in ("broker", "proxy"):
        definitions[f"keys of {role}"] = _server_keys(role)
        definitions["Servers"]["properties"][role] = {"$ref": f"#/$defs/keys of {role}"}
    definitions["Shock"]["properties"]["set"] = {"$ref": "#/$defs/keys of broker"}
    text = "In place of `at`: a log file whose lines begin with a moment."
    definitions["Trace"]["properties"]["file"] = {"type": "string", "description": text}
    text = "The scenario that this one changes: a shipped name, or a file relative to this one."
    schema["properties"]["extends"] = {"type": "string", "description": text}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "description": "One scenario: its topics and servers, what clients do, what is expected.",
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """Return the JSON schema of scenario documents as text, with a line for each definition."""
    schema = document_schema()
    definitions = schema.pop("$defs").items()
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in definitions]
    return f'{json.dumps(schema)[:-1]}, "$defs": {{\n' + ",\n".join(lines) + "\n}}\n"


def _server_keys(role: str) -> dict[str, Any]:
    names = sorted(each.key for each in known_keys(role))
    return {
        "type": ["object", "null"],
        "description": f"Configuration keys, as in {role}.conf.",
        "propertyNames": {"anyOf": [{"enum": names}, {"pattern": "[_.]"}]},
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }


def _relaxed(schema: Any, *, of_properties: bool = False) -> Any:  # noqa: ANN401
    """Return a JSON schema without required keys, and with ``anyOf`` in place of ``oneOf``."""
    if isinstance(schema, list):
        return [_relaxed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if of_properties:
        return {key: _relaxed(value) for key, value in schema.items()}
    return {
        _WORDS.get(key, key): _relaxed(value, of_properties=key == "properties")
        for key, value in schema.items()
        if key not in _LEFT_OUT
    }
