"""Rewrites imports of Floodgate's packages for wheels, where they have other names.

``from proto.frames import Frame`` becomes ``from pulsar_floodgate_client.proto.frames import
Frame``. The syntax tree locates imports, and only their names change: all other bytes stay.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

GENERATED = "_pb2.py"
"""File suffix of protoc's modules, which contain their own name in a string."""
_MODULE = re.compile(r"\w+(\.\w+)*_pb2")
_Place = tuple[int, int, str, bool]
"""Line, column in bytes, name, and whether an import binds the name without ``as``."""


class ImportFormError(Exception):
    """An import's form cannot be rewritten; the sentence names the form to use."""


def rewritten(source: str, name: str, homes: Mapping[str, str]) -> str:
    """Return a module's source with imports of our packages by their names in wheels.

    Args:
        source: The file's text.
        name: The file's path, for errors and for recognising generated modules.
        homes: The name in wheels of each top-level package of a checkout.

    Raises:
        ImportFormError: An import's form cannot be rewritten.
    """
    lines = source.encode().splitlines(keepends=True)
    tree = ast.parse(source, name)
    places = set(_imports(tree, name, homes))
    if name.endswith(GENERATED):
        places |= set(_own_names(tree, homes))
    for line, column, module, is_bare in sorted(places, reverse=True):
        text = lines[line - 1]
        if not text[column:].startswith(module.encode()):
            raise ImportFormError(f"{name}:{line}: write `from {module} import`, with one space")
        end = column + len(module.encode())
        bound = f" as {module}" if is_bare else ""
        top, dot, rest = module.partition(".")
        lines[line - 1] = text[:column] + f"{homes[top]}{dot}{rest}{bound}".encode() + text[end:]
    return b"".join(lines).decode()


def _imports(tree: ast.Module, name: str, packages: Collection[str]) -> Iterator[_Place]:
    """Yield the places of imported names to change."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if _top(node.module) in packages:
                yield node.lineno, node.col_offset + len("from "), node.module, False
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _top(alias.name) not in packages:
                    continue
                if alias.asname is None and "." in alias.name:
                    raise ImportFormError(
                        f"{name}:{node.lineno}: `import {alias.name}` binds the name "
                        f"{_top(alias.name)} alone, which cannot be rewritten; write "
                        f"`import {alias.name} as ...` or `from {alias.name} import ...`"
                    )
                yield alias.lineno, alias.col_offset, alias.name, alias.asname is None


def _own_names(tree: ast.Module, packages: Collection[str]) -> Iterator[_Place]:
    """Yield the places, after the quotation mark, of strings that name a generated module."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and _MODULE.fullmatch(value) and _top(value) in packages:
            yield node.lineno, node.col_offset + 1, value, False


def _top(name: str) -> str:
    return name.partition(".")[0]
