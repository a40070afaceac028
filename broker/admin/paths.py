"""The table of REST paths, which finds the handlers of a request as upstream's JAX-RS does.

Paths are compared undecoded: a literal is not decoded; a segment's parameters (RFC 3986, after a
semicolon) and a single slash at the end are ignored. Of several matching templates, templates with
more literal text come first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache, partial, update_wrapper
from itertools import filterfalse
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from aiohttp import web

    from broker.admin.context import AdminContext
    from broker.authorization.operations import Needs

    Handler: TypeAlias = Callable[[web.Request], Awaitable[object]]

F = TypeVar("F", bound="Callable[..., Any]")
DOMAIN = "{domain}"
REST = "{rest}"
"""Marks a last segment that matches one or more segments."""
_DOMAINS = ("persistent", "non-persistent")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})")
_DECLARED = "endpoints"
"""The attribute of a handler that holds its endpoints."""
_LOOKUP = "/lookup/"
_BELOW = "/admin/v2/"
_SUBJECTS = {
    "{topic}": "{domain}/{tenant}/{namespace}/{topic}",
    "namespaces/{namespace}": "namespaces/{tenant}/{namespace}",
    "schemas/{topic}": "schemas/{tenant}/{namespace}/{topic}",
}
"""Short beginnings of declared paths, and the segments that they stand for."""
_ROOTS = (_BELOW, "/admin/v3/", _LOOKUP)
"""The roots of upstream's web applications, which have no parameters."""


class Takes(Enum):
    """The kinds of request bodies that an endpoint accepts."""

    NOTHING = auto()
    """No body; a sent body is not read."""
    APPLICATION_JSON = auto()
    """Only ``application/json``."""
    JSON = auto()
    """Any media type of JSON."""
    NUMBER = auto()
    """Any media type of JSON, or plain text."""
    METADATA = auto()
    """A number of partitions with properties, with a media type of its own."""


async def _unbound(request: web.Request) -> object:
    """Stand in for a declared handler until ``Resource.endpoints`` binds it; never called."""
    raise AssertionError(f"{request.path} was declared and not bound")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An HTTP method of a path, used as a decorator of its handler; see ``endpoint``.

    Attributes:
        method: The HTTP method.
        path: The path, with variables in braces; ``{domain}`` stands for ``persistent`` and
            ``non-persistent``.
        needs: The required permission, if requests are authorized.
        takes: The kind of body.
        query: Names of the query's parameters.
        body: The JSON schema of the body.
        body_required: Whether a request without a body is refused.
        done: HTTP statuses of success, the usual status first; if empty, 200 for GET and 204 for
            changes.
        refused: HTTP statuses of refusals that most endpoints do not have.
        built: False if the endpoint is not implemented and refuses every request.
        handler: Answers a request: with a response, a value to be sent as JSON, or None for an
            empty response.
    """

    method: str
    path: str
    needs: Needs
    takes: Takes = Takes.NOTHING
    query: tuple[str, ...] = ()
    body: Mapping[str, Any] | None = None
    body_required: bool = True
    done: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    built: bool = True
    handler: Handler = _unbound

    def __call__(self, handler: F) -> F:
        """Declare a method of a resource as the handler of the endpoint."""
        handler.__dict__.setdefault(_DECLARED, []).insert(0, self)
        return handler

    @property
    def statuses(self) -> tuple[int, ...]:
        """The HTTP statuses of successful responses, the usual status first."""
        return self.done or ((200,) if self.method == "GET" else (204,))


def endpoint(request: str, needs: Needs, takes: Takes | None = None, **more: Any) -> Endpoint:  # noqa: ANN401 - Endpoint's attributes
    """Return a decorator that declares a method as the handler of a request.

    Args:
        request: ``METHOD path?name&name``, the path below ``/admin/v2`` or from a first slash on.
            A path may begin with ``{topic}``, ``namespaces/{namespace}`` or ``schemas/{topic}``.
        needs: The required permission, if requests are authorized.
        takes: The kind of body; None for the usual kind of the path.
        more: Further attributes of the endpoint.
    """
    method, _, target = request.partition(" ")
    path, _, query = target.partition("?")
    for short, whole in _SUBJECTS.items():
        if path.startswith(short):
            path = whole + path.removeprefix(short)
    if takes is None:
        takes = _usual(path, has_body=more.get("body") is not None)
    names = tuple(query.split("&")) if query else ()
    return Endpoint(
        method, path if path.startswith("/") else _BELOW + path, needs, takes, names, **more
    )


def _usual(path: str, *, has_body: bool) -> Takes:
    """Return the kind of body that upstream's resource class accepts for a path."""
    if path.startswith(("namespaces/", "tenants")) or (has_body and path.startswith("schemas/")):
        return Takes.APPLICATION_JSON
    return Takes.JSON if has_body else Takes.NOTHING


def given(handler: Callable[..., Awaitable[object]], *arguments: object) -> Handler:
    """Bind the first arguments of a handler; the result keeps the handler's name and docstring."""
    return update_wrapper(partial(handler, *arguments), handler)


class Resource:
    """Handlers of admin requests about one subject, such as topics or tenants."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    def endpoints(self) -> Iterator[Endpoint]:
        """Yield the endpoints that the resource's methods handle."""
        for name, function in vars(type(self)).items():
            for declared in getattr(function, _DECLARED, ()):
                yield replace(declared, handler=getattr(self, name))


@dataclass(frozen=True, slots=True)
class FoundPath:
    """A path of the table that matches a request, with its variables as sent."""

    methods: Mapping[str, Sequence[Endpoint]]
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Template:
    parts: tuple[str, ...]
    variables: dict[str, str]
    methods: dict[str, list[int]]

    @property
    def shape(self) -> tuple[str, ...]:
        """The segments of the template, without the names of its variables."""
        return tuple("{}" if _is_variable(one) and one != REST else one for one in self.parts)

    def fits(self, segments: Sequence[str]) -> bool:
        parts = self.parts
        if parts[-1] == REST:
            segments = segments[: len(parts)]
        return len(segments) == len(parts) and all(
            segment if _is_variable(part) else segment == part
            for segment, part in zip(segments, parts, strict=True)
        )


class PathTable:
    """All paths of the admin REST, with their endpoints."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._endpoints = list(endpoints)
        self._templates = _compiled(tuple((one.method, one.path) for one in self._endpoints))

    def templates(self) -> Iterator[tuple[str, Mapping[str, Sequence[Endpoint]]]]:
        """Yield each path, with its variables in braces, and its endpoints by HTTP method."""
        for template in self._templates:
            yield "/" + "/".join(template.parts), self._methods(template)

    def _methods(self, template: _Template) -> Mapping[str, Sequence[Endpoint]]:
        places = template.methods.items()
        return {method: [self._endpoints[one] for one in them] for method, them in places}

    def find(self, raw_path: str, *, takes_nul: bool = True) -> list[FoundPath]:
        """Return all paths of the table that match a request's path, the most literal first.

        Raises:
            RestError: 400, the path is not percent-encoded UTF-8, or has a forbidden character.
        """
        _check_encoding(raw_path)
        if not takes_nul and "%00" in raw_path:
            raise RestError(400, "no path of a request may have the character NUL (%00)")
        root = next((one for one in _ROOTS if raw_path.startswith(one)), None)
        if root is None:
            return []
        below = raw_path[len(root) :].split("/")
        segments = root.split("/")[1:-1] + [one.partition(";")[0] for one in below]
        if len(segments) > 1 and not segments[-1]:
            segments.pop()
        if root == _LOOKUP:
            # Upstream decodes the domain as a name here; below /admin/v2/ the domain is literal.
            segments[3:4] = [unquote(one) for one in segments[3:4]]
        return [
            FoundPath(self._methods(template), _variables(template, segments))
            for template in self._templates
            if template.fits(segments)
        ]


def _variables(template: _Template, segments: Sequence[str]) -> dict[str, str]:
    pairs = zip(template.parts, segments, strict=False)
    return {part[1:-1]: text for part, text in pairs if _is_variable(part)} | template.variables


def _is_variable(part: str) -> bool:
    return part.startswith("{")


@lru_cache(maxsize=2)  # Brokers of a process have the same calls.
def _compiled(calls: tuple[tuple[str, str], ...]) -> Sequence[_Template]:
    """Return path templates for (method, path) pairs, those with most literal text first."""
    found: dict[tuple[str, ...], _Template] = {}
    for place, (method, path) in enumerate(calls):
        for template in _templates(path):
            kept = found.setdefault(template.shape, template)
            kept.variables.update(template.variables)
            kept.methods.setdefault(method, []).append(place)
    return sorted(
        found.values(), key=lambda one: -sum(map(len, filterfalse(_is_variable, one.parts)))
    )


def _templates(path: str) -> Iterator[_Template]:
    for domain in _DOMAINS if DOMAIN in path else ("",):
        parts = tuple(path.replace(DOMAIN, domain).split("/")[1:])
        yield _Template(parts, {"domain": domain} if domain else {}, {})


def _check_encoding(raw_path: str) -> None:
    broken = _BROKEN_ESCAPE.search(raw_path)
    if broken:
        raise RestError(400, f"{broken.group()[:3]!r} in the path is no percent-encoded character")
    try:
        unquote(raw_path, errors="strict")
    except UnicodeDecodeError:
        raise RestError(400, f"{raw_path[-100:]!r} in the path is not UTF-8") from None
