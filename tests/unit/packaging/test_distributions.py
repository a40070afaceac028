"""Distributions are made of the table, and wheels import by their own names alone."""

import ast
import tomllib
from pathlib import Path

import pytest
from distributions import ROOT, SERVERS, distributions, homes, lay_out, wheel_project, whole_project


def project(name: str) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads(wheel_project(distributions()[name]))["project"]
    return found


@pytest.mark.parametrize("name", distributions())
def test_a_project_has_the_name_summary_and_extras_of_its_row(name: str) -> None:
    made = project(name)
    assert (made["name"], made["description"]) == (name, distributions()[name].summary)
    extras = made["optional-dependencies"]
    assert isinstance(extras, dict)
    assert {*extras} == {*distributions()[name].extras, "all"}


def test_the_servers_depend_on_the_client_of_the_same_version() -> None:
    made = project(SERVERS)
    dependencies = made["dependencies"]
    assert isinstance(dependencies, list)
    assert f"pulsar-floodgate-client=={made['version']}" in dependencies


def test_no_module_of_a_wheel_imports_by_a_name_of_the_checkout(tmp_path: Path) -> None:
    lay_out(ROOT, tmp_path, list(distributions()), whole_project())
    ours = {*homes()}
    for file in tmp_path.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & ours, file
    assert all((tmp_path / name).exists() for name in ("LICENSE", "NOTICE"))
    assert (tmp_path / "pulsar_floodgate" / "pytest_plugin.py").exists()
    assert (tmp_path / "pulsar_floodgate_loadgen" / "alerts" / "alerts.yml").exists()
