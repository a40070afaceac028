"""Policies of namespaces and topics, replayed as recorded from a real Pulsar 4.2.4.

Each policy is read, set to valid and invalid values, read again and removed. Each answer depends on
earlier calls.
"""

from pathlib import Path

import pytest

from tests.support.golden.exchange import load_deviations
from tests.support.golden.masks import Difference, complaint
from tests.support.golden.message_rest import load_rows, replay, row_name
from tests.support.golden.targets import FOREIGN_BROKER

pytestmark = pytest.mark.processes

RECORDED = Path(__file__).parents[1] / "golden" / "messages"
ROWS = load_rows(RECORDED / "policies.jsonl")
NAMES = [row_name(row) for row in ROWS]
DEVIATIONS = load_deviations(RECORDED / "deviations.toml")
ADMITTED = {} if FOREIGN_BROKER else DEVIATIONS


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Difference]]:
    """Return the differing cells, by row."""
    return replay(ROWS, "public/pp", tmp_path_factory.mktemp("golden-policies"), ADMITTED)


@pytest.mark.parametrize("name", NAMES)
def test_every_part_of_the_answer_agrees(name: str, found: dict[str, list[Difference]]) -> None:
    assert not complaint(found[name], ADMITTED.get((name, "broker")))


def test_the_whole_recording_is_replayed() -> None:
    assert len(NAMES) == len(set(NAMES)) > 700
