"""The OpenAPI description agrees with the admin REST's endpoints and handlers."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import broker.admin.resources
from broker.admin.context import AdminContext
from broker.admin.openapi.operations import IN_PATHS, admin_operations
from broker.admin.paths import PathTable, Takes
from broker.admin.routes import endpoints
from server.seeing.openapi import document

ENDPOINTS = endpoints(cast("AdminContext", Mock()))
OPERATIONS = list(admin_operations(ENDPOINTS))
DOCUMENT = document("Floodgate", OPERATIONS)
BODY_READERS = {
    "json_body",
    "json_object",
    "string_map",
    "partition_count",
    "partitions_and_properties",
    "reset_target",
    "given_target",
    "request.read",
}
BY_HANDLER = {one.handler.__qualname__: one for one in ENDPOINTS}
RESOURCES = Path(broker.admin.resources.__file__).parent
# Rows of the table of policies declare the parameters that policies read.
SOURCES = sorted(path for path in RESOURCES.rglob("*.py") if path.name != "endpoints.py")


def test_the_description_has_exactly_the_served_methods_of_the_served_paths() -> None:
    served = {
        (path, method.lower())
        for path, methods in PathTable(ENDPOINTS).templates()
        for method in methods
    }
    described = {(path, method) for path, item in DOCUMENT["paths"].items() for method in item}
    assert described == served


def test_each_operation_has_a_unique_id_and_a_summary_sentence() -> None:
    found = [one for item in DOCUMENT["paths"].values() for one in item.values()]
    assert len({one["operationId"] for one in found}) == len(found)
    assert [one["operationId"] for one in found if not one["summary"].endswith((".", ";"))] == []


def test_the_variables_of_a_path_are_declared_as_path_parameters() -> None:
    for path, item in DOCUMENT["paths"].items():
        for operation in item.values():
            named = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
            assert path.count("{") == len(named)
            assert all(f"{{{name}}}" in path for name in named)


def test_every_described_path_variable_occurs_in_an_operation() -> None:
    assert set(IN_PATHS) <= {name for one in OPERATIONS for name in one.variables}


def test_each_handler_declares_exactly_the_query_parameters_that_it_reads() -> None:
    read = dict(read_anywhere(_read_by))
    assert {name: set(one.query) for name, one in BY_HANDLER.items() if name in read} == {
        name: names for name, names in read.items() if name in BY_HANDLER
    }


def test_every_body_that_a_handler_reads_has_a_schema() -> None:
    reading = {name for name, found in read_anywhere(_body_read_by) if found}
    taking = {
        name
        for name, one in BY_HANDLER.items()
        if one.takes in (Takes.JSON, Takes.METADATA) and not one.query
    }
    described = {name for name, one in BY_HANDLER.items() if one.body or one.takes is Takes.NUMBER}
    assert ((reading & BY_HANDLER.keys()) | taking) - described == set()


def read_anywhere(
    read_by: Callable[[ast.AST], Iterator[str]],
) -> Iterator[tuple[str, set[str]]]:
    """Yield each function of the resources with the query parameters read by the function."""
    for path in SOURCES:
        yield from reads(path, read_by).items()


def reads(path: Path, read_by: Callable[[ast.AST], Iterator[str]]) -> dict[str, set[str]]:
    """Return the query parameters read by each handler and by the functions it calls here."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = dict(_functions(tree, ""))
    own = {
        name: {text for node in ast.walk(one) for text in read_by(node)}
        for name, one in functions.items()
    }

    def all_reads(name: str, seen: frozenset[str]) -> set[str]:
        found = set(own[name])
        for called in _called(functions[name], name.rpartition(".")[0]) - seen:
            if called in functions:
                found |= all_reads(called, seen | {called})
        return found

    return {name: all_reads(name, frozenset({name})) for name in functions}


def _functions(tree: ast.AST, inside: str) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{inside}{node.name}", node


def _called(function: ast.AST, owner: str) -> set[str]:
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{owner}.{node.attr}")
    return found


def _read_by(node: ast.AST) -> Iterator[str]:
    """Yield the names of ``flag(request, x)``, ``request.query.get(x)``, ``request.query[x]``."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "request.query":
        yield from _text(node.slice)
    if not isinstance(node, ast.Call):
        return
    called = ast.unparse(node.func)
    if called == "is_authoritative":
        yield "authoritative"
    elif called in ("flag", "_query_number"):
        yield from _text(node.args[1])
    elif called == "request.query.get":
        yield from _text(node.args[0])


def _body_read_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and ast.unparse(node.func) in BODY_READERS:
        yield "body"


def _text(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
