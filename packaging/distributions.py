"""The distributions of this checkout, from the table beside this file; their projects for builds.

A checkout has the packages at the top. Other projects use these names as well, so in a wheel they
stand in the distribution's import package, which has the distribution's name.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from first_party import rewritten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
SERVERS = "pulsar-floodgate"
LOADGEN = "pulsar-floodgate-loadgen"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class Distribution:
    """A distribution: a row of the table.

    Attributes:
        name: Its name in indexes.
        summary: What it is.
        packages: Packages of the checkout that it ships.
        dependencies: Names of what it depends on.
        scripts: Names of its commands.
        extras: Names of what each extra adds.
        top: The package that becomes the import package; empty for none.
    """

    name: str
    summary: str
    packages: Sequence[str]
    dependencies: Sequence[str]
    scripts: Sequence[str]
    extras: Mapping[str, Sequence[str]] = field(default_factory=dict)
    top: str = ""

    @property
    def package(self) -> str:
        """The import package."""
        return self.name.replace("-", "_")

    @property
    def homes(self) -> dict[str, str]:
        """The name in the wheel of each package of the checkout."""
        within = {name: f"{self.package}.{name}" for name in self.packages}
        return {**within, self.top: self.package} if self.top else within


def project_of(root: Path = ROOT) -> dict[str, Any]:
    """Return the project table of the checkout's pyproject.toml."""
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def distributions() -> dict[str, Distribution]:
    """Return the table's rows by name."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {name: Distribution(name, **row) for name, row in tomllib.loads(text).items()}


def homes() -> dict[str, str]:
    """Return the name in wheels of each package of the checkout."""
    return {name: home for one in distributions().values() for name, home in one.homes.items()}


def lay_out(root: Path, target: Path, names: Sequence[str], project: str) -> None:
    """Write a project for setuptools: some distributions' packages by their names in wheels.

    Args:
        root: The checkout.
        target: An empty folder.
        names: The distributions.
        project: The project's pyproject.toml.
    """
    everywhere = homes()
    for one in map(distributions().__getitem__, names):
        folders = {name: home.split(".") for name, home in one.homes.items()}
        if (root / "packaging" / one.package).exists():  # what only its wheel has
            folders[f"packaging/{one.package}"] = [one.package]
        for folder, home in folders.items():
            for file in sorted((root / folder).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    place = target.joinpath(*home, file.relative_to(root / folder))
                    _copy(file, place, everywhere)
        (target / one.package / "py.typed").touch()
    if LOADGEN in names:
        place = target / LOADGEN.replace("-", "_") / "alerts" / "alerts.yml"
        _copy(root / "deploy" / "alerts.yml", place, everywhere)
    page = f"packaging/{names[0]}.md" if len(names) == 1 else "README.md"
    shutil.copy(root / page, target / "README.md")
    for name in project_of(root)["license-files"]:
        shutil.copy(root / name, target)
    (target / "pyproject.toml").write_text(project, encoding="utf-8")


def _copy(file: Path, place: Path, everywhere: Mapping[str, str]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    data = file.read_bytes()
    if file.suffix in (".py", ".pyi"):
        data = rewritten(data.decode(), str(file), everywhere).encode()
    place.write_bytes(data)


def wheel_project(one: Distribution, root: Path = ROOT) -> str:
    """Return the pyproject.toml of a distribution."""
    project = project_of(root)
    own = ", ".join(sorted({*one.extras} - {"all"}))
    extras = {**one.extras, "all": [f"{one.name}[{own}]", *one.extras.get("all", ())]}
    made = {
        **project,
        "name": one.name,
        "description": one.summary,
        "urls": {"Homepage": f"https://pypi.org/project/{one.name}/"},
        "dependencies": _requirements(one.dependencies, project),
        "optional-dependencies": {
            extra: _requirements(names, project) for extra, names in extras.items()
        },
        "scripts": _scripts(one.scripts, project),
    }
    if one.name == SERVERS:  # for `uvx pulsar-floodgate` and `pipx run pulsar-floodgate`
        made["scripts"][SERVERS] = f"{one.package}.__main__:main"
    return _text(made, [one.package], root)


def whole_project(root: Path = ROOT) -> str:
    """Return the pyproject.toml of the checkout's own wheel: all packages, all dependencies."""
    project = project_of(root)
    packages = [one.package for one in distributions().values()]
    return _text({**project, "scripts": _scripts(project["scripts"], project)}, packages, root)


def _scripts(names: Iterable[str], project: Mapping[str, Any]) -> dict[str, str]:
    """Return commands by their modules' names in wheels."""
    places = {name: project["scripts"][name].partition(".") for name in names}
    return {name: f"{homes()[top]}{dot}{rest}" for name, (top, dot, rest) in places.items()}


def _requirements(names: Iterable[str], project: Mapping[str, Any]) -> list[str]:
    """Return requirements with the versions of the checkout's pyproject.toml."""
    listed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    known = {_base(requirement): requirement for requirement in listed}
    ours = distributions()
    return [f"{n}=={project['version']}" if _base(n) in ours else known[n] for n in names]


def _base(requirement: str) -> str:
    found = _NAME.match(requirement)
    return found.group() if found is not None else ""


def _text(project: Mapping[str, Any], packages: Sequence[str], root: Path) -> str:
    """Return a pyproject.toml for setuptools alone."""
    tool = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    find = {"include": [word for one in packages for word in (one, f"{one}.*")]}
    tables = {
        "build-system": {
            "requires": ["setuptools>=77"],
            "build-backend": "setuptools.build_meta",
        },
        "project": project,
        "tool.setuptools.packages.find": {**find, "namespaces": False},
        "tool.setuptools.package-data": tool["setuptools"]["package-data"],
    }
    lines = (f"[{name}]\n{_keys(table, chr(10))}\n" for name, table in tables.items())
    return "".join(lines)


def _keys(table: Mapping[str, Any], between: str) -> str:
    return between.join(f"{json.dumps(key)} = {_value(value)}" for key, value in table.items())


def _value(value: Any) -> str:  # noqa: ANN401 - what TOML has
    """Return a value as TOML: for tables and lists of tables JSON has another form."""
    if isinstance(value, dict):
        return f"{{{_keys(value, ', ')}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)
