"""The names of some rows, in steps."""

import numpy as np
import pytest

from broker.stores.snapshots import namespace_properties
from broker.stores.snapshots.namespace_properties import ROWS_PER_STEP, names_at_rows
from broker.topic_lists.sequence import TopicSequence

NAMES = [b"persistent://tenant/ns/topic-%06d" % number for number in range(30_000)]
SEQUENCE = TopicSequence.from_sorted(NAMES)


def taken(rows: np.ndarray, names: TopicSequence = SEQUENCE) -> tuple[TopicSequence, int]:
    """Return the names at some rows, and the number of steps."""
    work, steps = names_at_rows(names, rows), 0
    try:
        while True:
            next(work)
            steps += 1
    except StopIteration as done:
        return done.value, steps


@pytest.mark.parametrize(
    "rows",
    [
        np.arange(0),
        np.array([0]),
        np.array([29_999]),
        np.arange(0, 30_000, 1_000),
        np.arange(0, 30_000, 3),
        np.arange(10_000, 20_000),
        np.arange(29_999),
    ],
    ids=len,
)
def test_the_names_at_rows_form_a_sequence_of_exactly_these_names(rows: np.ndarray) -> None:
    sequence, _ = taken(rows)
    expected = TopicSequence.from_sorted([NAMES[row] for row in rows])
    assert list(sequence.names()) == list(expected.names())
    assert sequence.hash == expected.hash


@pytest.mark.parametrize("names", [SEQUENCE, TopicSequence.from_sorted(NAMES[:3])], ids=len)
def test_selecting_all_rows_returns_the_same_sequence(names: TopicSequence) -> None:
    assert taken(np.arange(len(names)), names)[0] is names


def test_blocks_selected_whole_are_shared() -> None:
    sequence, _ = taken(np.arange(1, 30_000))
    shared = set(map(id, SEQUENCE.blocks())) & set(map(id, sequence.blocks()))
    assert len(shared) == len(list(SEQUENCE.blocks())) - 1


@pytest.mark.parametrize("count", [ROWS_PER_STEP + 1, 15_000])
def test_many_rows_take_several_steps(count: int) -> None:
    rows = np.linspace(0, 29_999, count).astype(np.int64)
    assert taken(np.unique(rows))[1] > 1


def test_many_scattered_rows_are_assembled_into_blocks_in_steps(monkeypatch) -> None:
    monkeypatch.setattr(namespace_properties, "_FEW_OF_A_BLOCK", 1_000)
    monkeypatch.setattr(namespace_properties, "ROWS_PER_BLOCKS", 600)
    rows = np.arange(0, 30_000, 10)
    sequence, steps = taken(rows)
    expected = TopicSequence.from_sorted([NAMES[row] for row in rows])
    assert (list(sequence.names()), sequence.hash) == (list(expected.names()), expected.hash)
    assert steps == 6
    assert len(list(sequence.blocks())) == 3
