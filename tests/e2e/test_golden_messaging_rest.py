"""Recorded calls of a real Pulsar's admin REST about messages, replayed in order.

Another broker may be the target: see ``golden_targets``. The broker must be new and keep unused
topics (``brokerDeleteInactiveTopicsEnabled=false``).
"""

from pathlib import Path

import pytest

from tests.support.golden.exchange import load_deviations
from tests.support.golden.masks import Difference, complaint
from tests.support.golden.message_rest import load_rows, replay, row_name
from tests.support.golden.targets import FOREIGN_BROKER

pytestmark = pytest.mark.processes

RECORDED = Path(__file__).parents[1] / "golden" / "messages"
ROWS = load_rows(RECORDED / "rest.jsonl")
NAMES = [row_name(row) for row in ROWS]
DEVIATIONS = load_deviations(RECORDED / "deviations.toml")
ADMITTED = {} if FOREIGN_BROKER else DEVIATIONS


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Difference]]:
    """Return the differing cells, by row."""
    folder = tmp_path_factory.mktemp("golden-messaging-rest")
    return replay(ROWS, "public/mrest", folder, ADMITTED)


@pytest.mark.parametrize("name", NAMES)
def test_every_part_of_the_answer_agrees(name: str, found: dict[str, list[Difference]]) -> None:
    assert not complaint(found[name], ADMITTED.get((name, "broker")))


def test_the_whole_recording_is_replayed() -> None:
    assert len(NAMES) == len(set(NAMES)) == 423


def test_every_deviation_names_a_recorded_row() -> None:
    rows = {name for name, _ in DEVIATIONS if name.startswith("msg ")}
    assert not rows - set(NAMES), "deviations.toml names rows that are not replayed"
