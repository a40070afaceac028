"""Every store: a version's hash is the hash of the names, whichever changes led to the version."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from broker.stores.changes import TopicChanges
from proto.topic_hash import topics_hash
from tests.support.stores.topic_stores import MODES, A, topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.stores.store import MetadataStore

STEPS = 60
SEED = 7
LETTERS = "abz\u00e9\u4e2d\ue000\uff5e\U0001f600\U0010ffff-"
"""Java sorts characters above U+FFFF before U+E000, UTF-8 behind all characters."""


def random_changes(chance: random.Random) -> Iterator[TopicChanges]:
    """Return additions and removals; some are large enough for the bulk path."""
    there: list[bytes] = []
    for step in range(STEPS):
        count = 1_200 if step == STEPS // 2 else chance.randint(0, 6)
        added = [random_name(chance) for _ in range(count)]
        removed = chance.sample(there, min(len(there), chance.choice([0, 1, 3, 400])))
        there = sorted({*there, *added}.difference(removed))
        yield TopicChanges(added, removed)


def random_name(chance: random.Random) -> bytes:
    domain = chance.choice(["persistent", "persistent", "non-persistent"])
    return topic("".join(chance.choices(LETTERS, k=chance.randint(1, 6))), domain=domain)


async def assert_hashes(store: MetadataStore, expected: set[bytes]) -> None:
    snapshot = await store.snapshot(A)
    for mode in MODES:
        listing = snapshot.listing(mode)
        assert listing.hash == topics_hash(listing.names())
    assert {name.encode() for name in snapshot.listing(MODES[2]).names()} == expected


async def test_the_hash_of_each_version_is_the_hash_of_its_names(store: MetadataStore) -> None:
    expected: set[bytes] = set()
    for changes in random_changes(random.Random(SEED)):
        await store.apply(A, changes)
        expected = expected.union(changes.added).difference(changes.removed)
        await assert_hashes(store, expected)


async def test_the_changes_of_the_feed_lead_from_each_version_to_the_next(
    store: MetadataStore,
) -> None:
    feed, known = store.changes(), set[bytes]()
    listed = set[bytes]()
    for changes in random_changes(random.Random(SEED)):
        version = await store.apply(A, changes)
        change = await anext(feed)
        assert change.version == version
        listed = listed.union(changes.added).difference(changes.removed)
        if not change.complete:
            assert not change.added
            assert not change.removed
            known = set(listed)
        assert not known & set(change.added)
        assert set(change.removed) <= known
        known = known.union(change.added).difference(change.removed)
        assert known == listed


async def test_names_are_listed_in_javas_order(store: MetadataStore) -> None:
    ordered = [topic(name) for name in ("a", "\u4e2d", "\U0001f600", "\ue000", "\uff5e")]
    await store.apply(A, TopicChanges(ordered[::-1]))
    listing = (await store.snapshot(A)).listing(MODES[0])
    assert [name.encode() for name in listing.names()] == ordered
