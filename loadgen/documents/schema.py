"""The JSON schema of documents, for editors: made from the models that check them.

It asks for less than they do: a document that extends another need not say everything.
"""

from __future__ import annotations

import json
from typing import Any

from loadgen.documents.document import Head
from loadgen.documents.kinds import MODELS, load_fields
from loadgen.documents.server_keys import known_keys

SCHEMA_NAME = "scenario.schema.json"
_NUMBERS = ("number", "integer")
_UNITS = ("_bytes", "_bytes_per_second", "per_second", "seconds", "seconds_each", "share", "jitter")
_TEMPLATE = "#/$defs/{model}"


def document_schema() -> dict[str, Any]:
    """Return the schema of a document of any kind."""
    head = Head.model_json_schema(ref_template=_TEMPLATE)
    definitions = head.pop("$defs")
    loads = {kind: _load(kind, definitions) for kind in MODELS}
    for kind, load in loads.items():
        definitions[f"load of {kind}"] = load
    head["properties"]["kind"] = {"enum": list(MODELS), "description": "What its clients do."}
    for role in ("broker", "proxy"):
        definitions["ClusterPlan"]["properties"][role] = _server_keys(role)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of loadgen",
        "description": "One scenario: the servers it has, what clients do, and what is expected.",
        **{key: value for key, value in head.items() if key not in ("title", "description")},
        "allOf": [_load_of_kind(kind) for kind in MODELS],
        "$defs": dict(sorted(definitions.items())),
    }
    return dict(_relaxed(schema))


def schema_text() -> str:
    """Return the schema as a file: a line for each definition."""
    schema = document_schema()
    definitions = schema.pop("$defs")
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in schema.items()]
    inner = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in definitions.items()]
    lines.append('"$defs": {\n' + ",\n".join(inner) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _load(kind: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a kind's load; what it refers to is added to the definitions."""
    schema = MODELS[kind].model_json_schema(ref_template=_TEMPLATE)
    definitions |= schema.pop("$defs", {})
    fields = load_fields(kind)
    schema["properties"] = {field: schema["properties"][field] for field in fields}
    if "namespaces" in fields:
        schema["properties"]["namespaces"]["items"] = {
            "anyOf": [{"type": "string"}, {"$ref": _TEMPLATE.format(model="NamespaceExpectation")}]
        }
    return schema


def _load_of_kind(kind: str) -> dict[str, Any]:
    named = {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
    load = {"properties": {"load": {"$ref": _TEMPLATE.format(model=f"load of {kind}")}}}
    return {"if": named, "then": load}


def _server_keys(role: str) -> dict[str, Any]:
    names = sorted(each.key for each in known_keys(role))
    return {
        "type": ["object", "null"] if role == "proxy" else "object",
        "description": f"Configuration keys, as in {role}.conf.",
        "propertyNames": {"anyOf": [{"enum": names}, {"pattern": "[_.]"}]},
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }


def _relaxed(schema: Any, name: str = "") -> Any:  # noqa: ANN401
    """Return a schema in which nothing is required and numbers may have units."""
    if isinstance(schema, list):
        return [_relaxed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        "anyOf" if key == "oneOf" else key: _relaxed(value, key)
        for key, value in schema.items()
        if key not in ("discriminator", "title" if name != "properties" else "")
        and (key != "required" or name == "if")
    }
    if name == "properties":
        return {key: _with_unit(key, value) for key, value in found.items()}
    if found.get("properties", {}).get("kind", {}).get("const") == "trace":
        text = "Instead of at_seconds: a log with a moment at the beginning of each line."
        found["properties"]["file"] = {"type": "string", "description": text}
    return found


def _with_unit(key: str, schema: Any) -> Any:  # noqa: ANN401
    if not isinstance(schema, dict) or not key.endswith(_UNITS):
        return schema
    if schema.get("type") in _NUMBERS:
        outside = {each: schema[each] for each in ("default", "description") if each in schema}
        inside = {each: value for each, value in schema.items() if each not in outside}
        return {**outside, "anyOf": [inside, {"type": "string", "pattern": "^[0-9]"}]}
    return schema
