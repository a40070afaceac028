"""The operations of the admin REST, one for each method of each path of its endpoints."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from broker.admin.negotiation import METADATA_TYPE
from broker.admin.openapi.bodies import BODIES, NUMBER_OF_PARTITIONS, REQUIRED
from broker.admin.openapi.parameters import IN_PATHS, IN_QUERIES, READ_BY
from broker.admin.paths import PathTable, Takes
from server.http import JSON_TYPE
from server.seeing.openapi import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker.admin.paths import Endpoint, Handler
    from server.seeing.openapi import Schema

_NOT_BUILT = "NotImplementedAdmin"
_BODILESS = ("GET", "DELETE")


def admin_operations(endpoints: Iterable[Endpoint]) -> Iterator[Operation]:
    """Yield the operations; both domains of topics have paths of their own."""
    for path, methods in PathTable(endpoints).templates():
        for method, served in methods.items():
            yield _operation(method, path, served)


def handler_name(handler: Handler) -> str:
    """Return the name by which the tables of parameters and bodies know a handler."""
    return getattr(handler, "__qualname__", "")


def _operation(method: str, path: str, served: Sequence[Endpoint]) -> Operation:
    first = served[0]
    names = [handler_name(one.handler) for one in served]
    bodies = {kind: schema for one in served for kind, schema in _bodies(method, one)}
    read = dict.fromkeys(
        name
        for one, known_as in zip(served, names, strict=True)
        for name in (*one.query, *READ_BY.get(known_as, ()))
    )
    return Operation(
        method=method,
        path=path,
        what=_sentence(first.handler),
        tag=_tag(path),
        path_parameters=IN_PATHS,
        query=tuple(IN_QUERIES[name] for name in read),
        bodies=bodies,
        body_required=bool(bodies) and any(name in REQUIRED for name in names),
        built=not names[0].startswith(f"{_NOT_BUILT}."),
    )


def _bodies(method: str, endpoint: Endpoint) -> Iterator[tuple[str, Schema]]:
    known = endpoint.body
    if known is None:
        known = BODIES.get(handler_name(endpoint.handler))
    if endpoint.takes is Takes.METADATA:
        yield METADATA_TYPE, known or {}
    elif endpoint.takes is Takes.NUMBER:
        yield JSON_TYPE, NUMBER_OF_PARTITIONS
        yield "text/plain", NUMBER_OF_PARTITIONS
    elif known is not None:
        yield JSON_TYPE, known
    elif endpoint.takes is not Takes.NOTHING and method not in _BODILESS:
        yield JSON_TYPE, {}


def _sentence(handler: Handler) -> str:
    """Return the first sentence of a handler's docstring."""
    return (inspect.getdoc(handler) or "").split("\n\n")[0].replace("\n", " ")


def _tag(path: str) -> str:
    root, _, rest = path.removeprefix("/").partition("/")
    if root == "lookup":
        return root
    subject = rest.split("/")[1]
    return "topics" if subject in ("persistent", "non-persistent") else subject
