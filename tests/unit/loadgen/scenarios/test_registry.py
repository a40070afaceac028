"""A scenario is a folder and a row: nothing else of the general code knows it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import loadgen
from loadgen.scenarios.registry import SCENARIOS
from loadgen.tasks.task import ScenarioTask

ROOT = Path(loadgen.__file__).parent
GENERAL = [
    ROOT / "scenario.py",
    ROOT / "commands" / "scenario_options.py",
    *(ROOT / "commands").glob("run*.py"),
    *(
        path
        for folder in ("clients", "tasks", "executors", "run")
        for path in (ROOT / folder).glob("*.py")
    ),
]


def test_every_folder_has_a_row_and_every_row_a_folder() -> None:
    folders = {path.parent.name for path in (ROOT / "scenarios").glob("*/scenario.py")}
    assert folders == {name.replace("-", "_") for name in SCENARIOS}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_row_names_its_task(name: str) -> None:
    module, _, task = SCENARIOS[name].task.partition(":")
    assert issubclass(getattr(import_module(module), task), ScenarioTask)


@pytest.mark.parametrize("path", GENERAL, ids=lambda path: str(path.relative_to(ROOT)))
def test_general_code_knows_no_scenario_by_name(path: Path) -> None:
    # Part of a longer name it may be, as of a shipped scenario or of a package of the client.
    names = re.compile(rf"(?<![\w.-])({'|'.join(SCENARIOS)})\b", re.IGNORECASE)
    assert not names.findall(path.read_text(encoding="utf-8"))
