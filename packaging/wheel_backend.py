"""Build backend: setuptools, with another layout for wheels.

A checkout is installed unchanged (``pip install -e .``), with its packages at the top. A wheel has
a single top package, because other projects use the same package names. So the backend first writes
the wheel's files to a folder, with rewritten imports, and runs setuptools there.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from first_party import WHEEL, rewritten
from setuptools import build_meta
from setuptools.build_meta import build_editable as build_editable
from setuptools.build_meta import build_sdist as build_sdist
from setuptools.build_meta import get_requires_for_build_editable as get_requires_for_build_editable
from setuptools.build_meta import get_requires_for_build_sdist as get_requires_for_build_sdist
from setuptools.build_meta import get_requires_for_build_wheel as get_requires_for_build_wheel
from setuptools.build_meta import (
    prepare_metadata_for_build_editable as prepare_metadata_for_build_editable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = "floodgate_pytest"
_ONLY_IN_THE_WHEEL = f"""
[tool.setuptools]
py-modules = ["{PLUGIN}"]

[project.entry-points.pytest11]
floodgate = "{PLUGIN}"
"""
_INIT = '"""Floodgate: a Pulsar broker, proxy, client and load generator, and their limits."""\n'


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel (PEP 517)."""
    target = str(Path(wheel_directory).resolve())
    with _laid_out():
        return str(build_meta.build_wheel(target, config_settings, metadata_directory))


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Mapping[str, Any] | None = None
) -> str:
    """Write only the wheel's metadata (PEP 517)."""
    target = str(Path(metadata_directory).resolve())
    with _laid_out():
        return str(build_meta.prepare_metadata_for_build_wheel(target, config_settings))


@contextlib.contextmanager
def _laid_out() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="floodgate-wheel-") as folder:
        lay_out(ROOT, Path(folder))
        with contextlib.chdir(folder):
            yield


def lay_out(root: Path, target: Path) -> None:
    """Write the wheel's project: the checkout's packages in a single package, and metadata."""
    (target / WHEEL).mkdir()
    (target / WHEEL / "__init__.py").write_text(_INIT, encoding="utf-8")
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    packages = _packages(text)
    for package in packages:
        for file in sorted((root / package).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                _copy(file, target / WHEEL / file.relative_to(root), packages)
    _copy(root / "deploy" / "alerts.yml", target / WHEEL / "deploy" / "alerts.yml", packages)
    for name in ("README.md", "LICENSE", "NOTICE"):
        shutil.copy(root / name, target / name)
    shutil.copy(root / "packaging" / f"{PLUGIN}.py", target)
    (target / "pyproject.toml").write_text(wheel_project(text), encoding="utf-8")


def _packages(project: str) -> list[str]:
    find = tomllib.loads(project)["tool"]["setuptools"]["packages"]["find"]
    return [name for name in find["include"] if "." not in name and name != WHEEL]


def _copy(file: Path, place: Path, packages: list[str]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix in (".py", ".pyi"):
        source = file.read_bytes().decode()
        place.write_bytes(rewritten(source, str(file), packages).encode())
    else:
        shutil.copy(file, place)


def wheel_project(text: str) -> str:
    """Return the wheel's pyproject.toml: commands from the top package, and the pytest plug-in."""
    for target in tomllib.loads(text)["project"]["scripts"].values():
        text = text.replace(f'"{target}"', f'"{WHEEL}.{target}"')
    return text + _ONLY_IN_THE_WHEEL
