"""Strangers have the wheel, a page, and programs in Python, Java and Go: every step works."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.processes import ROOT
from tests.proof.newcomers.page import follow
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.wheel.building import build_wheel, clean_variables, write_constraints

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = ROOT / "docs" / "testing-your-application.md"
PROJECTS = ROOT / "examples" / "client_tests"
TOOLS = {
    "Python": ("python3",),
    "Java": ("javac", "mvn"),
    "Go": ("go",),
    "the page": ("bash", "mkfifo", "curl", "grep"),
}
# What each project says when its tests have passed.
PASSED = {
    "pytest": r"\b3 passed\b",
    "mvn": r"Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n",
    "go": r"^ok\s",
}
SHOWN = 60
_MADE_HERE = shutil.ignore_patterns("target", "__pycache__", ".pytest_cache")


def prove(options: ProofOptions) -> ProofResult:
    """Follow the page in a folder that has the wheel, the three projects and nothing else."""
    result = ProofResult()
    for who, tools in TOOLS.items():
        missing = [tool for tool in tools if shutil.which(tool) is None]
        if missing:
            said = f"{who} cannot be tried: this machine has no {' and no '.join(missing)}"
            result.check(f"tools of {who}", False, said)
    if result.checks:
        return result
    # Elsewhere: tools look for their projects in the folders above, too.
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        _newcomer(Path(folder), options, result)
    return result


def _newcomer(place: Path, options: ProofOptions, result: ProofResult) -> None:
    folder = place / "work"
    folder.mkdir()
    records = options.out / "steps"
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir(parents=True)
    options.note("building the wheel")
    build_wheel(folder)
    for project in PROJECTS.iterdir():
        shutil.copytree(project, folder / project.name, ignore=_MADE_HERE)
    variables = _variables(write_constraints(place))
    known = [name for name, value in variables.items() if str(ROOT) in value]
    result.check("elsewhere", not known, f"variables that name the repository: {known or 'none'}")
    options.note("following the page")
    passed = set()
    for step in follow(PAGE, folder, variables, records.resolve()):
        program = step.command.partition(" ")[0]
        wanted = PASSED.get(program)
        right = step.as_written and (
            wanted is None or re.search(wanted, step.said, re.MULTILINE) is not None
        )
        if right and wanted is not None:
            passed.add(program)
        result.check(step.command, right, _sentence(step.command, right, step.said))
    all_passed = passed == set(PASSED)
    result.check("all three", all_passed, f"projects whose tests passed: {sorted(passed)}")


def _variables(constraints: Path) -> Mapping[str, str]:
    """Return a newcomer's variables: nothing of the repository, and the versions of the lock."""
    variables = clean_variables()
    variables.pop("PWD", None)
    places = variables.get("PATH", os.defpath).split(os.pathsep)
    here = [place for place in places if not Path(place).is_relative_to(ROOT)]
    return {**variables, "PATH": os.pathsep.join(here), "PIP_CONSTRAINT": str(constraints)}


def _sentence(command: str, right: bool, said: str) -> str:
    shown = command if len(command) <= SHOWN else f"{command[:SHOWN]} ..."
    return f"$ {shown}" if right else f"$ {command}: {said[-500:].strip() or 'failed'}"
