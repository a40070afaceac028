"""The fixtures that the documentation offers for clients' own tests."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.official.client_tests import FOLDER, environment

pytestmark = [pytest.mark.official, pytest.mark.processes]


def test_the_fixtures_for_pytest_give_each_test_an_empty_namespace() -> None:
    # When
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pytest.ini"]
    done = subprocess.run(
        command,
        cwd=FOLDER / "pytest",
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # Then
    assert done.returncode == 0, done.stdout[-2000:]
    assert "3 passed" in done.stdout
