"""``/openapi.json``: a description of the REST API in OpenAPI 3.1, for programs.

It is built from operations, which are built from the routes themselves, so that every route is
described. Schemas are JSON Schema, as written by pydantic, which OpenAPI 3.0 does not support.
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
_DONE, _NOT_BUILT = {"description": "Done"}, {"description": "Not built here"}
_WHAT: Mapping[int | None, str] = {
    None: "Refused, with the reason",
    307: "Another broker serves it: repeat the request there",
    400: "The path, a parameter or the body cannot be read",
    403: "This is not allowed",
    404: "It does not exist",
    405: "Not supported for this kind of topic",
    406: "Not supported for this kind of topic",
    408: "Timed out",
    409: "In conflict with the current state",
    412: "A name or value is refused",
    413: "The body is too large",
    415: "A body of this media type is not accepted",
    422: "Stored or sent data cannot be read",
    429: "Too many requests wait for this",
    503: "Not now",
}
"""Descriptions of refusals, by status."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in an operation's path or query.

    Attributes:
        name: The name of the parameter.
        what: A description of the parameter.
        schema: The JSON schema of the values.
        example: An example value.
    """

    name: str
    what: str = ""
    schema: Schema = field(default_factory=lambda: {"type": "string"})
    example: object = None


@dataclass(frozen=True, slots=True)
class Operation:
    """A REST operation: an HTTP method of a path, with parameters and statuses.

    Attributes:
        method: The HTTP method.
        path: The path, with variables in braces.
        what: The summary, a sentence.
        tag: The heading under which the operation is listed.
        path_parameters: Descriptions of the path's variables, by name; may be incomplete.
        query: The parameters of the query.
        bodies: The schema of the body, by media type; empty if no body is read.
        body_required: Whether a body is required.
        built: Whether the operation is implemented; otherwise the response is 501.
        done: The HTTP statuses of success.
        refused: The statuses of specific refusals; any operation may return generic statuses, such
            as 401, 429 or 503.
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
    done: tuple[int, ...] = (200,)
    refused: tuple[int, ...] = ()

    @property
    def variables(self) -> list[str]:
        """The names of the variables in the operation's path, in order."""
        return _VARIABLE.findall(self.path)


def document(title: str, operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document that describes the given operations."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {"Error": _ERROR}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one)
        for body in one.bodies.values():
            schemas.update(body.get("$defs", {}))
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": VERSION},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": schemas,
            "responses": {_name(status): _refused_with(what) for status, what in _WHAT.items()},
        },
    }


def openapi_route(
    title: str, operations: Callable[[web.Application], Iterable[Operation]]
) -> web.RouteDef:
    """Return the route ``/openapi.json``, whose document is built at its first request."""
    made: list[bytes] = []

    def describe(app: web.Application) -> bytes:
        return json_bytes(document(title, operations(app)))

    async def openapi(request: web.Request) -> web.Response:
        if not made:
            # Hundreds of operations, half a megabyte of JSON: longer than a turn may take.
            made.append(await asyncio.to_thread(describe, request.app))
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
            **({str(status): _DONE for status in one.done} if one.built else {"501": _NOT_BUILT}),
            **{str(status): _refusal(status) for status in one.refused},
            "default": _refusal(None),
        },
    }
    if one.bodies:
        content = {
            kind: {"schema": {name: part for name, part in schema.items() if name != "$defs"}}
            for kind, schema in one.bodies.items()
        }
        found["requestBody"] = {"required": one.body_required, "content": content}
    return found


def _refusal(status: int | None) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{_name(status)}"}


def _name(status: int | None) -> str:
    return "refused" if status is None else f"refused{status}"


def _refused_with(what: str) -> dict[str, Any]:
    """Return the OpenAPI description of a refusal: a JSON object with a reason.

    Some refusals of a real broker are text or have no reason.
    """
    content = {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": what, "content": content}


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
    words = re.findall(r"\{?\w+", one.path.removeprefix("/admin/v2"))
    named = ("by_" + word[1:] if word.startswith("{") else word for word in words)
    last = ["slash"] if one.path.endswith("/") else []
    return "_".join([one.method.lower(), *named, *last])
