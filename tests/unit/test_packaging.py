"""The top-level names are generic words: the packages must be ours alone."""

import importlib
import importlib.metadata
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from distributions import SERVERS, distributions, homes, project_of, wheel_project
from setuptools import find_packages

from proto.version import VERSION
from server.module_names import IN_WHEELS
from tools.packages import ROWS

NAMED = re.compile(r"([\w-]*floodgate[\w-]*)\[([\w, -]+)\]")
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
    assert {owner for owner in owners if "floodgate" not in owner} == set()


def test_the_version_sent_to_peers_equals_the_declared_version() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert declared == VERSION


def test_each_package_is_in_exactly_one_distribution() -> None:
    assert homes() == IN_WHEELS
    shipped = [name for one in distributions().values() for name in one.packages]
    assert sorted(shipped) == sorted(PACKAGES)


def test_each_command_and_each_dependency_is_in_a_distribution() -> None:
    texts = [tomllib.loads(wheel_project(one))["project"] for one in distributions().values()]
    assert {name for text in texts for name in text["scripts"]} >= {*project_of()["scripts"]}
    needed = {word for text in texts for word in text["dependencies"]}
    needed |= {
        word for text in texts for part in text["optional-dependencies"].values() for word in part
    }
    assert {*project_of()["dependencies"]} <= needed


def needed(name: str) -> set[str]:
    """Return the packages of a distribution without extras, itself included, in the lock."""
    part = runpy.run_path(str(ROOT / "tools" / "locked_part.py"))
    ours = distributions()
    names = [*ours[name].dependencies]
    found = {name, *(one for one in names if one in ours)}
    names += [each for one in found - {name} for each in ours[one].dependencies]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    text = part["part_of"](lock, {part["normal"](one) for one in names} - set(ours))
    return found | {one for one, _ in part["blocks_of"](text)}


@pytest.mark.parametrize(
    ("name", "most"), [(row.what, row.packages) for row in ROWS if row.packages is not None]
)
def test_a_distribution_needs_no_more_packages_than_its_limit(name: str, most: int) -> None:
    assert len(needed(name)) <= most


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("pulsar-floodgate-client", "client.client, client.schema, client.table_view, limiter"),
        (SERVERS, "broker.__main__, broker.service, proxy.__main__, proxy.service"),
    ],
)
def test_modules_without_extras_import_with_the_base_dependencies(name: str, modules: str) -> None:
    there = {*needed(name), "setuptools"}
    refused = [
        top
        for top, owners in importlib.metadata.packages_distributions().items()
        if not there & {owner.lower().replace("_", "-") for owner in owners}
        and top not in (*PACKAGES, "google")
    ]
    program = f"import sys; sys.modules.update(dict.fromkeys({refused})); import {modules}"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def named_extras() -> set[tuple[str, str]]:
    """Return what code and pages tell a reader to install: a distribution, and an extra of it."""
    files = [
        file
        for name in (*PACKAGES, "packaging", "docs", "deploy")
        for file in (ROOT / name).rglob("*.*")
    ]
    files += [ROOT / "README.md", ROOT / "Dockerfile"]
    texts = [
        file.read_text("utf-8", "replace") for file in files if file.suffix in (".py", ".md", "")
    ]
    found = [NAMED.findall(text) for text in texts]
    return {
        (name, extra.strip())
        for several in found
        for name, many in several
        for extra in many.split(",")
    }


def test_pages_and_texts_name_only_existing_distributions_and_extras() -> None:
    known = {
        (name, extra) for name, one in distributions().items() for extra in {*one.extras, "all"}
    }
    named = named_extras()
    assert named
    assert named <= known


def test_exactly_the_folders_with_code_are_shipped() -> None:
    find = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    shipped = set(find_packages(str(ROOT), include=find["find"]["include"]))
    assert shipped == {str(one.relative_to(ROOT)).replace("/", ".") for one in folders}
