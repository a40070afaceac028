"""The operations of the admin REST, for each method of each path."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING

from broker.admin.negotiation import METADATA_TYPE
from broker.admin.openapi.parameters import IN_PATHS, IN_QUERIES
from broker.admin.openapi.schemas import NUMBER_OF_PARTITIONS
from broker.admin.paths import PathTable, Takes
from server.http import JSON_TYPE
from server.seeing.openapi import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker.admin.paths import Endpoint, Handler
    from server.seeing.openapi import Schema

_BODILESS = ("GET", "DELETE")


def admin_operations(endpoints: Iterable[Endpoint]) -> Iterator[Operation]:
    """Yield the operations; each domain of topics has its own paths."""
    for path, methods in PathTable(endpoints).templates():
        for method, served in methods.items():
            yield _operation(method, path, served)


def _operation(method: str, path: str, served: Sequence[Endpoint]) -> Operation:
    first = served[0]
    bodies = {kind: schema for one in served for kind, schema in _bodies(method, one)}
    read = dict.fromkeys(name for one in served for name in one.query)
    one = Operation(
        method=method,
        path=path,
        what=_sentence(first.handler),
        tag=_tag(path),
        path_parameters=IN_PATHS,
        query=tuple(IN_QUERIES[name] for name in read),
        bodies=bodies,
        body_required=any(one.body_required and _schema(one) is not None for one in served),
        built=first.built,
        done=tuple(dict.fromkeys(status for one in served for status in one.statuses)),
    )
    statuses = (*_refusals(method, one.variables, has_body=bool(bodies)), *first.refused)
    return replace(one, refused=statuses)


def _schema(endpoint: Endpoint) -> Schema | None:
    return NUMBER_OF_PARTITIONS if endpoint.takes is Takes.NUMBER else endpoint.body


def _bodies(method: str, endpoint: Endpoint) -> Iterator[tuple[str, Schema]]:
    known, takes = _schema(endpoint), endpoint.takes
    if takes is Takes.METADATA:
        yield METADATA_TYPE, known or {}
    elif known is not None:
        yield JSON_TYPE, known
        if takes is Takes.NUMBER:
            yield "text/plain", known
    elif takes is not Takes.NOTHING and method not in _BODILESS:
        yield JSON_TYPE, {}


def _refusals(method: str, variables: Sequence[str], *, has_body: bool) -> Iterator[int]:
    """Yield the statuses of refusals, by an operation's variables and body."""
    if "namespace" in variables:
        yield 307
    if variables or has_body:
        yield 400
    if variables:
        yield 404
    if "topic" in variables:
        yield 405
    if method != "GET":
        yield 409
    if variables or has_body:
        yield 412
    if has_body:
        yield 415


def _sentence(handler: Handler) -> str:
    """Return the first sentence of a handler's docstring."""
    return (inspect.getdoc(handler) or "").split("\n\n")[0].replace("\n", " ")


def _tag(path: str) -> str:
    root, _, rest = path.removeprefix("/").partition("/")
    if root == "lookup":
        return root
    subject = rest.split("/")[1]
    return "topics" if subject in ("persistent", "non-persistent") else subject
