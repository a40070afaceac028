"""The top-level names are generic words: the packages must be ours alone."""

import importlib
import importlib.metadata
import tomllib
from pathlib import Path

import pytest
from setuptools import find_packages

from proto.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("limiter", "proto", "client", "server", "broker", "proxy", "loadgen")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_top_level_name_resolves_to_this_repository(name: str) -> None:
    package = importlib.import_module(name)
    assert package.__file__ is not None
    assert Path(package.__file__).parent == ROOT / name


@pytest.mark.parametrize("name", PACKAGES)
def test_no_other_distribution_installs_a_top_level_name(name: str) -> None:
    owners = importlib.metadata.packages_distributions().get(name, [])
    # Then (an editable install may not list packages at all)
    assert set(owners) <= {"floodgate"}


def test_peers_are_told_the_version_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert declared == VERSION


def test_every_folder_with_code_and_nothing_else_is_shipped() -> None:
    find = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    shipped = set(find_packages(str(ROOT), include=find["find"]["include"]))
    assert shipped == {str(one.relative_to(ROOT)).replace("/", ".") for one in folders}
