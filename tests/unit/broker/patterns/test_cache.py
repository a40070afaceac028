"""The cache of listings is bounded by bytes, and keeps no other object alive."""

import gc
import threading
import tracemalloc
import weakref

import pytest

from broker.patterns.cache import ENTRY_BYTES, ListingCache
from broker.topic_lists.sequence import Selection, TopicListing, TopicSequence

A_KILOBYTE = 1_000


class Scope:
    """Scope of cached values."""


def test_a_cached_value_is_found_by_scope_and_key() -> None:
    cache, one, other = ListingCache(100_000), Scope(), Scope()
    cache.put(one, "a", "first", 10)
    assert cache.get(one, "a") == "first"
    assert cache.get(one, "b") is None
    assert cache.get(other, "a") is None


def test_a_new_value_of_a_key_replaces_the_old_value_and_its_size() -> None:
    cache, scope = ListingCache(100_000), Scope()
    cache.put(scope, 1, "first", 10)
    cache.put(scope, 1, "second", 20)
    assert cache.get(scope, 1) == "second"
    assert (cache.statistics().entries, cache.statistics().bytes) == (1, 20 + ENTRY_BYTES)


def test_the_least_recently_used_value_is_evicted() -> None:
    # Capacity for three
    cache, scope = ListingCache(3 * (A_KILOBYTE + ENTRY_BYTES)), Scope()
    for key in (1, 2, 3):
        cache.put(scope, key, f"value {key}", A_KILOBYTE)
    cache.get(scope, 1)
    cache.put(scope, 4, "value 4", A_KILOBYTE)
    kept = [key for key in (1, 2, 3, 4) if cache.get(scope, key) is not None]
    assert kept == [1, 3, 4]
    assert cache.statistics().evictions == 1


def test_a_value_above_the_bound_is_not_cached_and_evicts_no_value() -> None:
    cache, scope = ListingCache(10_000), Scope()
    cache.put(scope, 1, "value", 10)
    cache.put(scope, 2, "large", 10_000)
    assert cache.get(scope, 2) is None
    assert cache.get(scope, 1) == "value"


def test_a_cache_with_a_bound_of_0_keeps_no_value() -> None:
    cache, scope = ListingCache(0), Scope()
    cache.put(scope, 1, "value", 0)
    assert cache.get(scope, 1) is None


def test_cache_hits_and_misses_are_counted() -> None:
    cache, scope = ListingCache(10_000), Scope()
    cache.put(scope, 1, "value", 10)
    cache.get(scope, 1)
    cache.get(scope, 1)
    cache.get(scope, 2)
    statistics = cache.statistics()
    assert (statistics.hits, statistics.misses, statistics.evictions) == (2, 1, 0)


@pytest.mark.parametrize("in_a_thread", [False, True])
def test_values_of_a_collected_scope_are_removed(in_a_thread: bool) -> None:
    cache, scopes, other = ListingCache(100_000), [Scope()], Scope()
    cache.put(scopes[0], 1, "value", 10)
    cache.put(scopes[0], 2, "value", 10)
    cache.put(other, 1, "stays", 10)
    if in_a_thread:
        thread = threading.Thread(target=scopes.clear)
        thread.start()
        thread.join()
    scopes.clear()
    gc.collect()
    statistics = cache.statistics()
    assert (statistics.entries, statistics.bytes) == (1, 10 + ENTRY_BYTES)
    assert cache.get(other, 1) == "stays"


def test_cached_values_do_not_keep_their_scope_alive() -> None:
    cache, scope = ListingCache(100_000), Scope()
    gone = weakref.ref(scope)
    cache.put(scope, 1, "value", 10)
    del scope
    gc.collect()
    assert gone() is None


def test_collecting_the_scope_of_an_evicted_value_changes_no_other_value() -> None:
    # Capacity for one value: the first scope's only value is evicted
    cache, first, second = ListingCache(A_KILOBYTE + ENTRY_BYTES), Scope(), Scope()
    cache.put(first, 1, "first", A_KILOBYTE)
    cache.put(second, 1, "second", A_KILOBYTE)
    del first
    gc.collect()
    assert cache.statistics().entries == 1
    assert cache.get(second, 1) == "second"


@pytest.mark.parametrize(("kept_of_100", "count"), [(0, 2_000), (1, 1_000), (50, 40)])
def test_results_take_no_more_memory_than_is_counted(kept_of_100: int, count: int) -> None:
    names = [f"persistent://a/b/t-{number:05d}".ljust(100, "x").encode() for number in range(2_000)]
    listing = TopicListing(TopicSequence.from_sorted(names))
    rows = [row for row in range(len(names)) if row % 100 < kept_of_100]
    cache = ListingCache(1_000_000_000)
    _remember(cache, listing, rows, 10)
    gc.collect()
    tracemalloc.start()
    before, counted = tracemalloc.get_traced_memory()[0], cache.statistics().bytes
    _remember(cache, listing, rows, count)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    # And not much less
    counted = cache.statistics().bytes - counted
    assert taken <= counted <= 1.6 * taken


def _remember(cache: ListingCache, listing: TopicListing, rows: list[int], count: int) -> None:
    """Cache results that keep the given rows."""
    (sequence,) = listing.sequences
    start = cache.statistics().entries
    for number in range(start, start + count):
        selection = Selection(sequence)
        for block, chosen in sequence.blocks_of_rows(rows):
            selection.keep_rows(block, chosen)
        value = TopicListing(selection.sequence())
        cache.put(listing, f"a/b/pattern-{number}.*", value, selection.added_bytes)
