"""A version of a namespace, built in steps for large namespaces."""

import random

import pytest

from broker.stores.changes import TopicChanges
from broker.stores.snapshots import snapshot as module
from broker.stores.store import NamespaceSnapshot
from broker.topic_lists.sequence import TopicSequence
from tests.support.stores.topic_stores import MODES, NON_PERSISTENT, PERSISTENT, topic

LETTERS = {"plain": "abcd", "all": "ab\ue000\uff5e\U0001f600"}


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAMES_AT_ONCE", 8)


def some_names(letters: str, domain: str = "persistent") -> list[bytes]:
    """Return 100 unordered names with duplicates."""
    chance = random.Random(3)
    texts = ["".join(chance.choices(LETTERS[letters], k=3)) for _ in range(100)]
    return [topic(text, domain=domain) for text in texts]


def facts(sequence: TopicSequence) -> tuple[list[bytes], str]:
    return list(sequence.names()), sequence.hash


@pytest.mark.parametrize("letters", LETTERS)
def test_a_large_change_equals_a_sequence_built_from_its_names(letters: str) -> None:
    names = some_names(letters)
    made = NamespaceSnapshot().changed(TopicChanges(names))
    assert facts(made.persistent) == facts(TopicSequence.from_names(names))


def test_a_large_change_applies_its_removals_and_keeps_existing_names() -> None:
    names = some_names("all")
    before = NamespaceSnapshot().changed(TopicChanges([topic("first")]))
    made = [
        NamespaceSnapshot().changed(TopicChanges(names, removed=names[:1])),
        before.changed(TopicChanges(names)),
    ]
    expected = [[name for name in names if name != names[0]], [*names, topic("first")]]
    assert [facts(one.persistent) for one in made] == [
        facts(TopicSequence.from_names(those)) for those in expected
    ]


@pytest.mark.parametrize("letters", LETTERS)
def test_rows_of_a_database_are_divided_by_domain_and_into_system_topics(letters: str) -> None:
    kinds = [some_names(letters, domain) for domain in ("persistent", "non-persistent")]
    hidden = [topic("__change_events"), topic("__change_events-partition-0")]
    rows = sorted({*kinds[0], *kinds[1], *hidden})
    made = NamespaceSnapshot.from_rows(7, rows, {"p": 1})
    assert (made.version, made.partitioned, made.system) == (7, {"p": 1}, frozenset(hidden))
    assert facts(made.persistent) == facts(TopicSequence.from_names(kinds[0]))
    assert facts(made.non_persistent) == facts(TopicSequence.from_names(kinds[1]))


def test_a_selection_has_the_topics_of_its_mode() -> None:
    kinds = [some_names("all", domain) for domain in ("persistent", "non-persistent")]
    rows = sorted({*kinds[0], *kinds[1], topic("__change_events")})
    found = {mode: NamespaceSnapshot().selection(rows, mode) for mode in MODES}
    for mode, names in zip((PERSISTENT, NON_PERSISTENT), kinds, strict=True):
        assert [facts(one) for one in found[mode].sequences] == [
            facts(TopicSequence.from_names(names))
        ]


def test_unchanged_parts_of_a_snapshot_are_shared() -> None:
    before = NamespaceSnapshot().changed(
        TopicChanges([topic("a"), topic("__change_events")], partitioned={"p": 1})
    )
    after = before.changed(TopicChanges([topic("b")]))
    assert after.partitioned is before.partitioned
    assert after.system is before.system
    assert after.non_persistent is before.non_persistent


def test_a_change_may_state_its_version() -> None:
    assert NamespaceSnapshot(3).changed(TopicChanges(), 9).version == 9
