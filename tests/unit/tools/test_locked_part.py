import re

import pytest

from tests.support.processes.server_process import REPOSITORY
from tools.locked_part import part_of, requirements

LOCK = """\
# Every dependency.
big-one==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:00
    # via floodgate (pyproject.toml)
big-one==2.0 ; python_full_version >= '3.12' \\
    --hash=sha256:01
    # via floodgate (pyproject.toml)
Deep==1 \\
    --hash=sha256:02
    # via small
small==1 \\
    --hash=sha256:03
    # via
    #   big-one
    #   test-tool
test-tool==1 \\
    --hash=sha256:04
    # via floodgate (pyproject.toml)
"""


def pinned(part: str) -> list[str]:
    return re.findall(r"^\S+==[\d.]+", part, re.MULTILINE)


def test_a_part_has_the_requested_packages_and_dependencies_for_every_python() -> None:
    part = part_of(LOCK, {"big-one"})
    assert pinned(part) == ["big-one==1.0", "big-one==2.0", "Deep==1", "small==1"]
    assert part.count("--hash=") == len(pinned(part))


def test_a_package_missing_in_the_lock_is_named() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        part_of(LOCK, {"big-one", "nowhere"})


def test_requirements_are_the_dependencies_of_a_project_and_its_named_extras(tmp_path) -> None:
    project = tmp_path / "pyproject.toml"
    extras = 'java = ["a.Runtime==1"]\ndev = ["test-tool"]\n'
    tables = f'[project]\ndependencies = ["Big_One>=1"]\n[project.optional-dependencies]\n{extras}'
    project.write_text(tables, encoding="utf-8")
    assert requirements(project, []) == {"big-one"}
    assert requirements(project, ["java"]) == {"big-one", "a-runtime"}


def test_the_own_part_has_the_packages_of_the_servers_and_no_test_tools() -> None:
    lock = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
    wanted = requirements(REPOSITORY / "pyproject.toml", [])
    names = {text.partition("==")[0] for text in pinned(part_of(lock, wanted))}
    assert {"aiohttp", "multidict", "pyarrow", "pydantic-core"} <= names
    assert not {"pytest", "hypothesis", "mypy", "ruff", "pulsar-client"} & names
