"""Newcomers with the wheel, a page, and programs in Python, Java and Go: every step works."""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.processes import ROOT
from tests.proof.newcomers.page import follow
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.wheel.building import clean_variables, write_constraints

INSTALL = ROOT / "docs" / "install.md"
PAGE = ROOT / "docs" / "testing-your-application.md"
PROJECTS = ROOT / "examples" / "client_tests"
TOOLS = {
    "Python": ("python3",),
    "Java": ("javac", "mvn"),
    "Go": ("go",),
    "the page": ("bash", "mkfifo", "curl", "grep"),
}
# Each project's success message, by the beginning of its command.
PASSED = {
    "pytest": r"\b4 passed\b",
    "mvn -B -ntp -f junit": r"Tests run: 4, Failures: 0, Errors: 0, Skipped: 0\n",
    "go test": r"^ok\s",
    **{f"mvn -q -B -ntp -f {other}": r"^an order$" for other in ("spring", "reactive", "flink")},
}
SHOWN = 60
_NOT_IN_A_CLONE = shutil.ignore_patterns(
    *(".git", ".venv", "out", "dist", "build", "*.egg-info", "target", "__pycache__", ".*_cache")
)


def prove(options: ProofOptions) -> ProofResult:
    """Build the wheel by its page, and use it by its page without other files of the project."""
    result = ProofResult()
    for who, tools in TOOLS.items():
        missing = [tool for tool in tools if shutil.which(tool) is None]
        if missing:
            said = f"{who} cannot be tried: this machine has no {' and no '.join(missing)}"
            result.check(f"tools of {who}", False, said)
    if result.checks:
        return result
    # In another folder: tools look for their projects in parent folders, too.
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        _newcomer(Path(folder), options, result)
    return result


def _newcomer(place: Path, options: ProofOptions, result: ProofResult) -> None:
    clone, folder = place / "clone", place / "work"
    shutil.copytree(ROOT, clone, ignore=_NOT_IN_A_CLONE)
    shutil.copytree(PROJECTS, folder, ignore=_NOT_IN_A_CLONE)
    variables = _variables(write_constraints(place))
    known = [name for name, value in variables.items() if str(ROOT) in value]
    result.check("elsewhere", not known, f"variables that name the repository: {known or 'none'}")
    options.note("making the wheel")
    _follow(INSTALL, clone, variables, options, result)
    for wheel in (clone / "dist").glob("*.whl"):
        shutil.copy(wheel, folder)
    options.note("following the page")
    passed = _follow(PAGE, folder, variables, options, result)
    said = f"projects whose tests passed: {', '.join(sorted(passed)) or 'none'}"
    result.check("all projects", passed == set(PASSED), said)


def _follow(
    page: Path,
    folder: Path,
    variables: Mapping[str, str],
    options: ProofOptions,
    result: ProofResult,
) -> set[str]:
    """Follow a page; return the programs that reported passed tests."""
    records = options.out.resolve() / page.stem
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir(parents=True)
    passed = set()
    for step in follow(page, folder, variables, records):
        program = next((one for one in PASSED if step.command.startswith(one)), "")
        wanted = PASSED.get(program, "")
        right = step.as_written and re.search(wanted, step.said, re.MULTILINE) is not None
        if right and wanted:
            passed.add(program)
        result.check(step.command, right, _sentence(step.command, right, step.said))
    return passed


def _variables(constraints: Path) -> Mapping[str, str]:
    """Return a newcomer's variables: nothing of the repository, and the versions of the lock."""
    variables = clean_variables()
    for shell in ("PWD", "OLDPWD"):
        variables.pop(shell, None)
    places = variables.get("PATH", os.defpath).split(os.pathsep)
    here = [place for place in places if not Path(place).is_relative_to(ROOT)]
    return {**variables, "PATH": os.pathsep.join(here), "PIP_CONSTRAINT": str(constraints)}


def _sentence(command: str, right: bool, said: str) -> str:
    shown = command if len(command) <= SHOWN else f"{command[:SHOWN]} ..."
    return f"$ {shown}" if right else f"$ {command}: {said[-500:].strip() or 'failed'}"
