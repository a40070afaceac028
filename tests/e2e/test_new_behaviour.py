"""A behaviour of docs/behaviours.md is a module and a row, and runs in every place."""

import json
import shutil
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.support.processes.server_process import REPOSITORY

pytestmark = pytest.mark.processes

EXAMPLE = REPOSITORY / "examples" / "behaviours"
MODULE, DOCUMENT = EXAMPLE / "list_again.py", EXAMPLE / "list-again.yaml"
REGISTRY = "behaviours/registry.py"
PAGE = (REPOSITORY / "docs" / "behaviours.md").read_text(encoding="utf-8")
ROWS = {
    "from loadgen.behaviours.list import List\n": (
        "from loadgen.behaviours.list_again import ListAgain\n"
    ),
    "    List | ": "ListAgain | ",
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with loadgen after the page's steps."""
    folder = tmp_path_factory.mktemp("changed")
    shutil.copytree(
        REPOSITORY / "loadgen", folder / "loadgen", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(MODULE, folder / "loadgen" / "behaviours")
    registry = folder / "loadgen" / REGISTRY
    text = registry.read_text(encoding="utf-8")
    for place, row in ROWS.items():
        assert text.count(place) == 1
        text = text.replace(place, place + row)
    registry.write_text(text, encoding="utf-8")
    return folder


def test_the_page_shows_the_current_module_registry_row_and_document(changed: Path) -> None:
    before = (REPOSITORY / "loadgen" / REGISTRY).read_text(encoding="utf-8").splitlines()
    after = (changed / "loadgen" / REGISTRY).read_text(encoding="utf-8").splitlines()
    lines = [each for each in unified_diff(before, after, n=0) if each[:1] in "+-"][2:]
    assert "\n".join(["```diff", *lines, "```"]) in PAGE
    for path, language in ((MODULE, "python"), (DOCUMENT, "yaml")):
        assert f"```{language}\n{path.read_text(encoding='utf-8')}```" in PAGE


@pytest.mark.parametrize("place", ["processes", "virtual"])
def test_the_behaviour_runs_over_sockets_and_in_virtual_time(changed, place, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loadgen", "run", DOCUMENT, "--place", place, "--json",
         "--out", tmp_path],
        cwd=changed,
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    # A busy machine is late, which is no fault of the behaviour.
    assert done.returncode in (0, 98), done.stderr
    assert json.loads(done.stdout)["total"]["answered"] == 40
