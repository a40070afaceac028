"""Partition counts equal a dict in name order, after any changes."""

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.stores.snapshots import partition_counts
from broker.stores.snapshots.partition_counts import PartitionCounts

# Few different names, so that many are set twice and forgotten; some share beginnings, some differ
# in the middle of a character, and some contain a line separator.
_LETTERS = st.sampled_from(["a", "b", "\n", "\0", "\u00e8", "\u00e9", "\uffff", "\U0001f600"])
_STARTS = st.sampled_from(["persistent://t/n/", "non-persistent://t/n/", ""])
NAMES = st.builds(str.__add__, _STARTS, st.text(_LETTERS, max_size=3))
STEPS = st.lists(
    st.dictionaries(NAMES, st.sampled_from([0, 0, 1, 12, 2**31 - 1]), max_size=30), max_size=8
)


@pytest.fixture(autouse=True, scope="module", params=[0, 2, 16], ids=["large", "small", "mixed"])
def small_leaves(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let few names have many leaves, and few changes be many."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setattr(partition_counts, "LEAF_BYTES", 200)
            patch.setattr(partition_counts, "FILLED_BYTES", 150)
            patch.setattr(partition_counts, "SMALL_LEAF_BYTES", 100)
            patch.setattr(partition_counts, "NAMES_AT_ONCE", 3)
            patch.setattr(partition_counts, "MANY_CHANGES", request.param)
        yield


def told(model: Mapping[str, int], step: Mapping[str, int]) -> dict[str, int]:
    """Apply a change of counts to a dict."""
    return {name: count for name, count in {**model, **step}.items() if count}


def check(counts: PartitionCounts, model: Mapping[str, int], steps: list[dict[str, int]]) -> None:
    """Compare counts with a dict's, including absent names."""
    assert list(counts.items()) == sorted(model.items(), key=lambda item: item[0].encode())
    assert (len(counts), bool(counts)) == (len(model), bool(model))
    for name in {name for step in steps for name in step}:
        assert counts.get(name) == model.get(name)
        assert (name in counts) == (name in model)
    assert all(leaf.size for leaf in counts.leaves)


@given(STEPS)
def test_partition_counts_equal_a_dict_after_any_changes(steps: list[dict[str, int]]) -> None:
    versions: list[tuple[PartitionCounts, dict[str, int]]] = [(PartitionCounts(), {})]
    for step in steps:
        counts, model = versions[-1]
        versions.append((counts.changed(step), told(model, step)))
    # Earlier versions are unchanged
    for counts, model in versions:
        check(counts, model, steps)
