"""A real Pulsar's admin REST about messages, with the wire traffic in between, replayed in order.

Calls about messages (``rest``), policies of namespaces and topics (``policies``), and by subject:
new partitions and their subscriptions (``growing``), deleted partitions of an existing topic
(``gone``), the last message of a compacted topic (``views``), a namespace limited to three topics
(``room``), unused non-persistent topics and the statistics of partitions (``unused``), names ending
like partitions' names (``numbered``), the broker's own cursors (``internal``), stored policies
without effect (``kept``), names in paths, and missing bodies (``enums``), statistics of consumers
(``consumers``). ``python -m tests.recording.messages`` makes the recordings of subjects.

Another broker may be the target: see ``golden_targets``. The broker must be new and keep unused
topics (``brokerDeleteInactiveTopicsEnabled=false``).
"""

from pathlib import Path

import pytest

from tests.support.golden.exchange import load_deviations
from tests.support.golden.masks import complaint
from tests.support.golden.message_rest import load_rows, replay, row_name
from tests.support.golden.targets import FOREIGN_BROKER

pytestmark = pytest.mark.processes

RECORDED = Path(__file__).parents[1] / "golden" / "messages"
NAMESPACES = {
    "rest": "public/mrest",
    "policies": "public/pp",
    "growing": "public/growing",
    "gone": "public/gone",
    "views": "public/last",
    "room": "public/room",
    "unused": "public/unused",
    "numbered": "public/numbered",
    "internal": "public/internal",
    "kept": "public/kept",
    "enums": "public/enums",
    "consumers": "public/consumers",
}
ROWS = {recording: load_rows(RECORDED / f"{recording}.jsonl") for recording in NAMESPACES}
CASES = [(recording, row_name(row)) for recording, rows in ROWS.items() for row in rows]
DEVIATIONS = load_deviations(RECORDED / "deviations.toml")
ADMITTED = {} if FOREIGN_BROKER else DEVIATIONS


@pytest.mark.parametrize("recording", NAMESPACES)
def test_every_answer_agrees_except_admitted_deviations(recording: str, tmp_path: Path) -> None:
    found = replay(ROWS[recording], NAMESPACES[recording], tmp_path, ADMITTED)
    complaints = {name: complaint(found[name], ADMITTED.get((name, "broker"))) for name in found}
    assert not {name: said for name, said in complaints.items() if said}
    assert list(found) == [row_name(row) for row in ROWS[recording]]


def test_the_whole_recordings_are_replayed() -> None:
    assert len(CASES) == len(set(CASES)) == 2_325


def test_every_deviation_names_a_recorded_row() -> None:
    rows = {name for name, _ in DEVIATIONS if not name.startswith("dialogues/")}
    assert not rows - {name for _, name in CASES}, "deviations.toml names rows not replayed"
