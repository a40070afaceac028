"""Recordings of a real Pulsar 4.2.4 by subject, replayed in order.

New partitions and their subscriptions (``growing``), deleted partitions of an existing topic
(``gone``), the last message of a compacted topic (``views``), a namespace limited to three topics
(``room``), unused non-persistent topics and the statistics of partitions (``unused``), names ending
like partitions' names (``numbered``), the broker's own cursors (``internal``), stored policies
without effect (``kept``), names in paths, and missing bodies (``enums``), statistics of consumers
(``consumers``). ``python -m tests.recording.messages`` makes the recordings.
"""

from pathlib import Path

import pytest

from tests.support.golden.exchange import load_deviations
from tests.support.golden.masks import Difference, complaint
from tests.support.golden.message_rest import load_rows, replay, row_name
from tests.support.golden.targets import FOREIGN_BROKER

pytestmark = pytest.mark.processes

RECORDED = Path(__file__).parents[1] / "golden" / "messages"
NAMESPACES = {
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
ROWS = {subject: load_rows(RECORDED / f"{subject}.jsonl") for subject in NAMESPACES}
CASES = [(subject, row_name(row)) for subject, rows in ROWS.items() for row in rows]
DEVIATIONS = load_deviations(RECORDED / "deviations.toml")
ADMITTED = {} if FOREIGN_BROKER else DEVIATIONS


@pytest.fixture(scope="module")
def found(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[str, str], list[Difference]]:
    """Return the differing cells, by subject and row."""
    return {
        (subject, name): different
        for subject, namespace in NAMESPACES.items()
        for name, different in replay(
            ROWS[subject], namespace, tmp_path_factory.mktemp(subject), ADMITTED
        ).items()
    }


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_every_part_of_the_answer_agrees(
    case: tuple[str, str], found: dict[tuple[str, str], list[Difference]]
) -> None:
    assert not complaint(found[case], ADMITTED.get((case[1], "broker")))


def test_every_row_has_a_name_of_its_own() -> None:
    assert len(CASES) == len(set(CASES))
