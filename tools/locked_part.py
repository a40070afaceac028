"""Print the part of a lock file that some requirements need, with the standard library alone.

    python locked_part.py requirements.lock setuptools
    python locked_part.py requirements.lock --project pyproject.toml --extra postgresql

The lock names each package's dependents (``# via``): the part is the requested packages and all
their dependencies. So images install the tested versions, without test tools.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

_PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?==", re.MULTILINE)
_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*")
_VIA = re.compile(r"^ +# (?:via)? *([A-Za-z0-9][\w.-]*)", re.MULTILINE)


def normal(name: str) -> str:
    """Return a package name in the form in which package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def blocks_of(lock: str) -> list[tuple[str, str]]:
    """Return the name and the lines of each pinned package: version, hashes and dependents.

    A package has several blocks if its version depends on the version of Python.
    """
    starts = [found.start() for found in _PINNED.finditer(lock)]
    texts = [lock[a:b] for a, b in zip(starts, [*starts[1:], len(lock)], strict=True)]
    return [(normal(_NAME.findall(text)[0]), text) for text in texts]


def part_of(lock: str, wanted: set[str]) -> str:
    """Return the lock file's lines for the packages ``wanted`` and for all their dependencies.

    Raises:
        KeyError: A package is not in the lock file.
    """
    blocks = blocks_of(lock)
    if missing := wanted - {name for name, _ in blocks}:
        raise KeyError(", ".join(sorted(missing)))
    taken: set[str] = set()
    new = wanted
    while new:
        taken |= new
        new = {name for name, text in blocks if new & {*map(normal, _VIA.findall(text))}} - taken
    return "".join(text for name, text in blocks if name in taken)


def requirements(project: Path, extras: list[str]) -> set[str]:
    """Return the names of the packages that a project and some of its extras require."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    texts = [*table["dependencies"]]
    for extra in extras:
        texts += table["optional-dependencies"][extra]
    return {normal(_NAME.findall(text)[0]) for text in texts}


def main() -> None:
    """Print the part of a lock file that the command line requests."""
    parser = argparse.ArgumentParser(description="Print the part of a lock that is needed.")
    parser.add_argument("lock", type=Path)
    parser.add_argument("names", nargs="*", type=normal, help="packages")
    parser.add_argument("--project", type=Path, help="a pyproject.toml: what it depends on")
    parser.add_argument("--extra", action="append", default=[], help="of the project, too")
    asked = parser.parse_args()
    wanted = set(asked.names)
    if asked.project:
        wanted |= requirements(asked.project, asked.extra)
    try:
        sys.stdout.write(part_of(asked.lock.read_text(encoding="utf-8"), wanted))
    except KeyError as error:
        sys.exit(f"{asked.lock} has no {error.args[0]}; make it again: make lock")


if __name__ == "__main__":
    main()
