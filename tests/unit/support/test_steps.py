"""Steps are live lines on a terminal and plain lines anywhere else."""

import io

import pytest
from rich.console import Console

from tests.support.steps import StepDisplay


def shown(*, terminal: bool, fail: bool = False) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=terminal, color_system=None)
    try:
        with StepDisplay(console).shown() as steps, steps.step("Making [x] topics") as note:
            note("1 of 2 files")
            assert not fail
    except AssertionError:
        assert fail
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_plain_lines_say_what_begins_and_how_long_it_took() -> None:
    begun, done = shown(terminal=False).splitlines()
    assert begun.endswith("s] Making [x] topics …")
    assert "done in 0.0 s: 1 of 2 files" in done


def test_live_line_has_time_and_note() -> None:
    text = shown(terminal=True)
    assert "• Making [x] topics" in text
    assert "1 of 2 files" in text


@pytest.mark.parametrize("terminal", [True, False])
def test_failed_step_is_not_shown_as_done(terminal: bool) -> None:
    text = shown(terminal=terminal, fail=True)
    assert "•" not in text
    assert "done" not in text
