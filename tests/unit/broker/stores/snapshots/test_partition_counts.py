"""The cost of partition counts and of their changes."""

import gc
import tracemalloc

import pytest

from broker.stores.changes import TopicChanges
from broker.stores.conditions import MANY_NAMES, is_large
from broker.stores.snapshots import partition_counts
from broker.stores.snapshots.partition_counts import FILLED_BYTES, LEAF_BYTES, PartitionCounts


def name(number: int) -> str:
    """Return a name of 88 bytes, 34 of them shared by the namespace's names."""
    return f"persistent://tenant/namespace-{number * 7919 % 100_003:06}.{number:051}"


COUNTS = {name(number): 1 + number % 60 for number in range(5_000)}


def test_a_partition_count_takes_less_memory_than_its_name() -> None:
    tracemalloc.start()
    made = PartitionCounts.of(COUNTS)
    gc.collect()
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    # Allocations of the module, regardless of other threads
    own = snapshot.filter_traces([tracemalloc.Filter(True, partition_counts.__file__)])
    taken = sum(statistic.size for statistic in own.statistics("filename"))
    assert 20 < taken / len(made) < 70


@pytest.mark.parametrize("count", [0, 7], ids=["forgotten", "set"])
def test_a_change_replaces_a_single_leaf_and_shares_the_rest(count: int) -> None:
    before = PartitionCounts.of(COUNTS)
    after = before.changed({name(1_234): count})
    assert after.get(name(1_234), 0) == count
    assert len(after.leaves) == len(before.leaves) > 50
    assert len(set(before.leaves).difference(after.leaves)) == 1


def test_an_empty_change_returns_the_same_version() -> None:
    before = PartitionCounts.of(COUNTS)
    assert before.changed({}) is before


def test_a_leaf_above_its_maximum_size_is_split() -> None:
    made = PartitionCounts.of({name(0): 1})
    for number in range(1, 400):
        made = made.changed({name(number): 1})
    sizes = [leaf.entry_bytes for leaf in made.leaves]
    assert max(sizes) <= LEAF_BYTES
    assert sum(sizes) / len(sizes) > LEAF_BYTES / 3


def test_leaves_built_from_many_names_keep_room_for_additions() -> None:
    sizes = [leaf.entry_bytes for leaf in PartitionCounts.of(COUNTS).leaves[:-1]]
    assert max(sizes) < FILLED_BYTES + 200
    assert min(sizes) > FILLED_BYTES - 200


def test_removing_most_partition_counts_merges_small_leaves() -> None:
    made = PartitionCounts.of(COUNTS)
    names = list(made)
    # From both ends, singly, all but every fiftieth
    for row in [*range(0, 2_500), *reversed(range(2_500, 5_000))]:
        if row % 50:
            made = made.changed({names[row]: 0})
    assert list(made) == names[::50]
    assert len(made.leaves) <= 6


def test_a_name_larger_than_a_leaf_does_not_separate_its_neighbours() -> None:
    long = "persistent://tenant/b" + "x" * 10 * LEAF_BYTES
    made = PartitionCounts.of({"persistent://tenant/a": 2, long: 3, **COUNTS})
    assert (made[long], made["persistent://tenant/a"]) == (3, 2)
    assert [leaf.size for leaf in made.leaves if leaf.size < 10] == [2]


def test_many_changes_of_a_leaf_are_applied_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_counts, "_splice", None)
    few = PartitionCounts.of({name(0): 1, name(4_999): 1})
    assert few.changed(COUNTS) == COUNTS


def test_many_partition_counts_are_a_large_change() -> None:
    many = dict.fromkeys(map(str, range(MANY_NAMES)), 0)
    assert not is_large(TopicChanges(partitioned=many))
    assert is_large(TopicChanges(partitioned={**many, "one more": 0}))
