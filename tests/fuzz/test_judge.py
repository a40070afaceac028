import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.fuzz.judge import Judge
from tests.fuzz.replay import fewest
from tests.fuzz.rules import ERRORS, BrokenRuleError
from tests.fuzz.target import Loaded


def judge_of(one_input: Callable[[bytes], None], out: Path | None, **parts: object) -> Judge:
    return Judge(Loaded(SimpleNamespace(one_input=one_input, ALLOWED=(KeyError,), **parts)), out)


def fails(data: bytes) -> None:
    if data == b"named":
        raise KeyError
    if data:
        raise ValueError(data)


def test_an_error_that_is_no_answer_is_kept_once(tmp_path: Path) -> None:
    judge = judge_of(fails, tmp_path)
    for data in (b"", b"named", b"one", b"two"):
        judge.take(data)
    assert (judge.inputs, judge.refused, list(judge.finds.values())) == (4, 1, [2])
    assert [path.read_bytes() for path in tmp_path.glob("*.bin")] == [b"one"]
    assert "It comes alone" in next(tmp_path.glob("*.txt")).read_text()


def test_without_a_place_for_it_a_find_is_raised() -> None:
    with pytest.raises(ValueError, match="one"):
        judge_of(fails, None).take(b"one")


def test_an_error_that_a_server_logs_as_its_own_is_found() -> None:
    def logs(_: bytes) -> None:
        try:
            fails(b"x")
        except ValueError:
            logging.getLogger("some.server").exception("closing a peer")

    with (
        ERRORS.listening(),
        pytest.raises(BrokenRuleError, match="an error of ours: closing a peer"),
    ):
        judge_of(logs, None).take(b"x")


def test_what_it_takes_inputs_before_is_kept_with_those_and_reduced(tmp_path: Path) -> None:
    # A target that breaks at its third b
    count = 0

    def third(data: bytes) -> None:
        nonlocal count
        count += data == b"b"
        if count == 3:
            raise ValueError

    def renewed() -> None:
        nonlocal count
        count = 0

    judge = judge_of(third, tmp_path, renewed=renewed)
    inputs = [b"a", b"b", b"a", b"b", b"a", b"b"]
    for data in inputs:
        judge.take(data)
    (path,) = tmp_path.glob("*.history.json")
    assert len(json.loads(path.read_text())) == len(inputs)
    assert "only after the inputs before it" in next(tmp_path.glob("*.txt")).read_text()
    assert fewest(judge_of(third, None, renewed=renewed), inputs) == [b"b", b"b", b"b"]
