"""Fixtures that tests of several commands ask for."""

import sys
from collections.abc import Callable

import pytest

from loadgen import __main__ as command_line


@pytest.fixture
def loadgen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line; returns exit code, standard output and standard error."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["loadgen", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return run
