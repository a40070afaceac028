"""Runs the documentation's pytest examples for tests of Pulsar programs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.server_process import REPOSITORY

pytestmark = [pytest.mark.official, pytest.mark.processes]

PLUGIN = "tests.official.checkout_plugin"
EXAMPLE = REPOSITORY / "examples" / "client_tests" / "pytest"
OF_THE_PLUGIN = REPOSITORY / "tests" / "proof" / "wheel" / "plugin_tests.py"
INSTALL = REPOSITORY / "docs" / "install.md"
# Plug-ins of this project's own tests, absent at users' projects.
QUIET = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:hypothesispytest")


def block(language: str) -> str:
    """Return the page's block of a language."""
    page = INSTALL.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return found


def test_the_tests_of_the_example_and_the_page_pass(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    shutil.copy(OF_THE_PLUGIN, tmp_path / "test_plugin.py")
    (tmp_path / "test_page.py").write_text(block("python"))
    (tmp_path / "pytest.ini").write_text(block("ini"))
    paths = f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'packaging'}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *QUIET, "-p", PLUGIN],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "11 passed" in done.stdout
