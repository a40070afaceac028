"""Long work is reported in lines where no bar is visible."""

import time

import pytest

from loadgen.commands.shown import counting


def told(capsys: pytest.CaptureFixture[str], moments: list[float], *, as_json: bool = False) -> str:
    """Count up, a step at each moment, and return the output."""
    clock = iter(moments)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(time, "monotonic", lambda: next(clock, moments[-1]))
        with counting("Importing topics", 5_000, as_json=as_json) as on_done:
            for done, _ in enumerate(moments, start=1):
                on_done(done * 1_000)
    return capsys.readouterr().err


def test_without_a_terminal_progress_is_printed_as_occasional_lines(capsys) -> None:
    assert told(capsys, [0, 5, 9, 11, 11, 12]) == "Importing topics: 3,000 of 5,000\n"


def test_with_json_progress_is_printed_as_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, [0, 11], as_json=True) == '{"step": "Importing topics: 1,000 of 5,000"}\n'
