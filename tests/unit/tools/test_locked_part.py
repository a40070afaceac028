import re
from pathlib import Path

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


def test_a_part_is_what_was_asked_for_and_all_that_it_brought_each_for_every_python() -> None:
    part = part_of(LOCK, {"big-one"})
    assert pinned(part) == ["big-one==1.0", "big-one==2.0", "Deep==1", "small==1"]
    assert part.count("--hash=") == len(pinned(part))


def test_what_the_lock_does_not_have_is_named() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        part_of(LOCK, {"big-one", "nowhere"})


def test_a_project_asks_for_its_dependencies_and_those_of_the_extras_that_are_named(
    tmp_path: Path,
) -> None:
    project = tmp_path / "pyproject.toml"
    extras = 'java = ["a.Runtime==1"]\ndev = ["test-tool"]\n'
    tables = f'[project]\ndependencies = ["Big_One>=1"]\n[project.optional-dependencies]\n{extras}'
    project.write_text(tables, encoding="utf-8")
    assert requirements(project, []) == {"big-one"}
    assert requirements(project, ["java"]) == {"big-one", "a-runtime"}


def test_the_projects_own_part_has_what_servers_need_and_no_test_tool() -> None:
    lock = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
    wanted = requirements(REPOSITORY / "pyproject.toml", [])
    names = {text.partition("==")[0] for text in pinned(part_of(lock, wanted))}
    assert {"aiohttp", "multidict", "pyarrow", "pydantic-core"} <= names
    assert not {"pytest", "hypothesis", "mypy", "ruff", "pulsar-client"} & names
