"""``/openapi.json``: a description of REST for programs, in OpenAPI 3.0.

It is made of operations, which are made of the routes themselves: what is served is described.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from aiohttp import web

from proto.version import VERSION
from server.http import JSON_TYPE, json_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Schema: TypeAlias = "Mapping[str, Any]"
OPENAPI_PATH = "/openapi.json"
_VARIABLE = re.compile(r"\{(\w+)\}")
_ERROR = {
    "type": "object",
    "required": ["reason"],
    "properties": {"reason": {"type": "string"}},
}
_REFUSED = {"$ref": "#/components/responses/refused"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the path or the query.

    Attributes:
        name: As it is written.
        what: What it says.
        schema: Its values.
        example: One of them.
    """

    name: str
    what: str = ""
    schema: Schema = field(default_factory=lambda: {"type": "string"})
    example: object = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    Attributes:
        method: The HTTP method.
        path: With variables in braces.
        what: One sentence on what it does.
        tag: The subject under which it is listed.
        path_parameters: What is known of the variables; of others the name alone.
        query: The parameters that it reads.
        bodies: The schema of a body by media type; none: no body is read.
        body_required: Whether there must be one.
        built: Whether it is; otherwise it is answered 501.
    """

    method: str
    path: str
    what: str
    tag: str
    path_parameters: Mapping[str, Parameter] = field(default_factory=dict)
    query: tuple[Parameter, ...] = ()
    bodies: Mapping[str, Schema] = field(default_factory=dict)
    body_required: bool = False
    built: bool = True

    @property
    def variables(self) -> list[str]:
        """The names in the path, in order."""
        return _VARIABLE.findall(self.path)


SCHEMA_REFERENCES = "#/components/schemas/{model}"
"""How schemas refer to the parts that they define under ``$defs``, which the document shares."""


def document(title: str, operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the description of all operations; each path and method is there once."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {"Error": _ERROR}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one)
        for body in one.bodies.values():
            schemas.update(body.get("$defs", {}))
    return {
        "openapi": "3.0.3",
        "info": {"title": title, "version": VERSION},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": schemas,
            "responses": {
                "refused": {
                    "description": "Refused, with the reason",
                    "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
            },
        },
    }


def openapi_route(
    title: str, operations: Callable[[web.Application], Iterable[Operation]]
) -> web.RouteDef:
    """Return the route, which describes itself too; the document is made when first asked for."""
    made: list[bytes] = []

    async def openapi(request: web.Request) -> web.Response:
        if not made:
            # Half a megabyte of JSON takes about as long as a turn may.
            described = list(operations(request.app))
            made.append(await asyncio.to_thread(lambda: json_bytes(document(title, described))))
        return web.Response(body=made[0], headers={"Content-Type": JSON_TYPE})

    return web.get(OPENAPI_PATH, openapi)


def _described(one: Operation) -> dict[str, Any]:
    of_path = [one.path_parameters.get(name, Parameter(name)) for name in one.variables]
    found: dict[str, Any] = {
        "summary": one.what,
        "tags": [one.tag],
        "operationId": _identifier(one),
        "parameters": [
            *(_parameter(parameter, "path") for parameter in of_path),
            *(_parameter(parameter, "query") for parameter in one.query),
        ],
        "responses": {
            **({"2XX": {"description": "Done"}} if one.built else {}),
            **({} if one.built else {"501": {"description": "Not built here"}}),
            "default": _REFUSED,
        },
    }
    if one.bodies:
        content = {
            kind: {"schema": {name: part for name, part in schema.items() if name != "$defs"}}
            for kind, schema in one.bodies.items()
        }
        found["requestBody"] = {"required": one.body_required, "content": content}
    return found


def _parameter(one: Parameter, place: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": place,
        **({"required": True} if place == "path" else {}),
        **({"description": one.what} if one.what else {}),
        "schema": one.schema,
        **({"example": one.example} if one.example is not None else {}),
    }


def _identifier(one: Operation) -> str:
    """Return a name that no other operation has: paths that differ only here get other names."""
    words = re.findall(r"\{?\w+", one.path.removeprefix("/admin/v2"))
    named = ("by_" + word[1:] if word.startswith("{") else word for word in words)
    return "_".join([one.method.lower(), *named])
