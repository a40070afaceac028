"""Kept inputs of every target (past finds, and a sample) break no rule."""

import pytest

from tests.fuzz.judge import Judge
from tests.fuzz.kept import FOLDER, kept
from tests.fuzz.registry import TARGETS
from tests.fuzz.rules import ERRORS

MOST_BYTES = 300_000


@pytest.mark.parametrize("name", TARGETS)
def test_no_kept_input_breaks_a_rule(name: str) -> None:
    judge, inputs = Judge(TARGETS[name].loaded()), kept(name)
    with ERRORS.listening():
        judge.renew()
        for data in inputs:
            judge.take(data)
    judge.renew()
    assert judge.inputs == len(inputs) > 0


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.txt")) < MOST_BYTES
