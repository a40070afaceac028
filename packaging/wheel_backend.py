"""Build backend: setuptools, with another layout for wheels.

A checkout is installed unchanged (``pip install -e .``), with its packages at the top. For a wheel
the packages are first written to a folder by their names in wheels, where setuptools then runs.
``pip wheel --config-settings distribution=NAME .`` makes the wheel of a distribution,
``pip wheel .`` one wheel of the whole checkout.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from distributions import ROOT, distributions, lay_out, wheel_project, whole_project
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

BUILT_AT = "1577836800"
"""The time of all files in a wheel, so that the same files make the same wheel: 2020."""


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel (PEP 517)."""
    target = str(Path(wheel_directory).resolve())
    with _laid_out(config_settings):
        return str(build_meta.build_wheel(target))


def build(folder: Path) -> None:
    """Build the wheels of all distributions, for a release."""
    for name in distributions():
        build_wheel(str(folder), {"distribution": name})


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Mapping[str, Any] | None = None
) -> str:
    """Write only a wheel's metadata (PEP 517)."""
    target = str(Path(metadata_directory).resolve())
    with _laid_out(config_settings):
        return str(build_meta.prepare_metadata_for_build_wheel(target))


@contextlib.contextmanager
def _laid_out(config_settings: Mapping[str, Any] | None) -> Iterator[None]:
    every = distributions()
    name = (config_settings or {}).get("distribution")
    if name is not None and name not in every:
        raise SystemExit(f"distribution={name!r:.50} is none of {', '.join(every)}")
    project = wheel_project(every[name]) if name is not None else whole_project()
    os.environ.setdefault("SOURCE_DATE_EPOCH", BUILT_AT)
    mask = os.umask(0o022)  # the files' rights are in the wheel
    try:
        with tempfile.TemporaryDirectory(prefix="floodgate-wheel-") as folder:
            lay_out(ROOT, Path(folder), [name] if name is not None else list(every), project)
            with contextlib.chdir(folder):
                yield
    finally:
        os.umask(mask)
