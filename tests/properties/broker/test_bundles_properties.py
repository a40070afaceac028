"""Bundles divide the hashes: each topic lies in exactly one bundle."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.bundles import boundaries, bundle_named, bundle_of

COUNTS = st.integers(1, 300)


@given(COUNTS, st.binary(max_size=40))
def test_the_bundle_of_a_topic_is_found_by_name_and_contains_the_topic(count, name) -> None:
    bundle = bundle_of(name, count)
    named = bundle_named(str(bundle), count)
    assert named == bundle
    assert named.kept([name]) == [name]


@given(COUNTS)
def test_the_bundles_cover_all_hashes_without_a_gap(count: int) -> None:
    edges = boundaries(count)
    bundles = [bundle_named(f"{low}_{high}", count) for low, high in pairwise(edges)]
    assert len(bundles) == count
    assert bundles[0].low == 0
    assert bundles[-1].high == 2**32
    assert all(a.high == b.low for a, b in pairwise(bundles))
