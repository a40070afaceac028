"""The example projects in ``examples/client_tests``, and how they find this very broker."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.official.clients import ENVIRONMENTS, needs, run

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "client_tests"


def environment() -> dict[str, str]:
    """Return the environment in which the examples find the broker of this project."""
    broker = Path(sys.executable).with_name("floodgate-broker")
    return {**os.environ, "FLOODGATE_BROKER": str(broker), "PYTHONPATH": str(ROOT)}


def run_go() -> str:
    """Run the Go example; return what ``go test`` said.

    Raises:
        ClientMissingError: There is no Go, its modules cannot be had, or a test failed.
    """
    needs("Go", "go")
    return run("Go", "go", "test", "-count=1", "./...", cwd=FOLDER / "go", env=environment())


def run_junit() -> str:
    """Run the JUnit example on a copy; return what Maven said.

    Raises:
        ClientMissingError: There is no Maven, its jars cannot be had, or a test failed.
    """
    needs("Java", "javac", "mvn")
    copy = ENVIRONMENTS / "junit"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(FOLDER / "junit", copy)
    return run("Java", "mvn", "-B", "-ntp", "test", cwd=copy, env=environment())


EXAMPLES: dict[str, tuple[Callable[[], str], str]] = {
    "JUnit": (run_junit, "BUILD SUCCESS"),
    "Go": (run_go, "ok"),
}
"""How to run each, and a word of its success."""
