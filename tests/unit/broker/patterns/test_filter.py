"""Patterns on listings: cost, sharing, and whose work they delay."""

from __future__ import annotations

import asyncio
import gc
import itertools
import math
import weakref
from typing import TYPE_CHECKING

import pytest

from broker.patterns import filter as module
from broker.patterns.cache import ListingCache
from broker.patterns.filter import (
    MOST_STEP_NAMES,
    PatternFilter,
    PatternRules,
    _StepSize,
)
from broker.patterns.pattern import LinearTime, RegexImplementation
from broker.topic_lists.sequence import Selection, TopicListing, TopicSequence
from tests.support.clocks.settle import started
from tests.support.processes.cluster import until

if TYPE_CHECKING:
    import pyarrow as pa

    from broker.topic_lists.block import Mask

NAMES = [f"persistent://a/b/t-{number:05d}".ljust(200, "x").encode() for number in range(8_000)]
EVEN = "a/b/t-[0-9]*[02468]x*"


def listing_of(names: list[bytes]) -> TopicListing:
    return TopicListing(TopicSequence.from_sorted(names))


def pattern_filter(*, share: bool = True, cache_bytes: int = 0) -> PatternFilter:
    return PatternFilter(
        PatternRules(
            enabled=True,
            max_length=50,
            implementation=RegexImplementation.RE2J_WITH_JDK_FALLBACK,
            share=share,
            timeout_seconds=1.0,
        ),
        ListingCache(cache_bytes),
    )


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of names in each call of the engine; every step is a turn."""
    counts: list[int] = []
    matching = LinearTime.matching

    def counted(self: LinearTime, paths: pa.StringArray) -> Mask:
        counts.append(len(paths))
        return matching(self, paths)

    monkeypatch.setattr(LinearTime, "matching", counted)
    monkeypatch.setattr(module, "TURN_SECONDS", -1)
    return counts


@pytest.mark.parametrize(
    ("pattern", "applies"),
    [("a" * 50, True), ("a" * 51, False), ("\U0001f600" * 25, True), ("\U0001f600" * 26, False)],
)
def test_the_length_of_a_pattern_is_counted_in_utf_16_units(pattern: str, applies: bool) -> None:
    assert pattern_filter().applies_to(pattern) == applies


@pytest.mark.parametrize("share", [True, False])
async def test_a_pattern_that_keeps_all_names_returns_the_same_listing(share: bool) -> None:
    listing = listing_of(NAMES)
    kept = await pattern_filter(share=share).filter(listing, "a/b/t-.*")
    assert kept is listing


async def test_a_block_that_is_kept_whole_is_not_copied() -> None:
    listing = listing_of(NAMES)
    kept = await pattern_filter().filter(listing, "a/b/t-0[0-4].*|a/b/t-03.*x")
    (before,), (after,) = listing.sequences, kept.sequences
    assert list(after.names()) == NAMES[:5_000]
    assert set(list(after.wire_parts)[:-1]) <= set(before.wire_parts)
    assert len(after.wire_parts) > 10


async def test_a_filtered_listing_equals_a_new_sequence_of_the_kept_names() -> None:
    even = [name for name in NAMES if int(name[19:24]) % 2 == 0]
    kept = await pattern_filter().filter(listing_of(NAMES), EVEN)
    (sequence,), expected = kept.sequences, TopicSequence.from_sorted(even)
    assert list(sequence.names()) == even
    assert sequence.totals == expected.totals


async def test_only_blocks_within_the_prefix_of_a_pattern_are_matched(matched) -> None:
    kept = await pattern_filter().filter(listing_of(NAMES), "a/b/t-0412[0-9]x*")
    assert [name.encode() for name in kept.names()] == NAMES[4_120:4_130]
    assert sum(matched) < 1_000


async def test_a_shared_evaluation_continues_until_its_last_waiter_is_cancelled(
    matched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Hundreds of turns
    monkeypatch.setattr(module, "FIRST_STEP_NAMES", 8)
    monkeypatch.setattr(module, "_SHORT_STEP_SECONDS", 0)
    listing, patterns = listing_of(NAMES), pattern_filter()
    first, second = (asyncio.create_task(patterns.filter(listing, EVEN)) for _ in range(2))
    await until(lambda: matched)
    first.cancel()
    await asyncio.sleep(0)
    under_way, before = len(patterns._evaluations), len(matched)
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (under_way, len(patterns._evaluations)) == (1, 0)
    assert len(matched) <= before + 1
    assert len(asyncio.all_tasks()) == 1


async def test_each_turn_of_the_event_loop_belongs_to_a_single_evaluation(
    matched: list[int],
) -> None:
    listing, patterns = listing_of(NAMES), pattern_filter()
    tasks = [asyncio.create_task(patterns.filter(listing, f"{EVEN}|{n}")) for n in range(10)]
    most = before = 0
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        most, before = max(most, len(matched) - before), len(matched)
    assert len(matched) >= 10
    assert most == 1


async def test_a_slow_pattern_is_matched_against_fewer_names_per_step(
    matched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each clock reading is 10 ms after the preceding reading
    moments = itertools.count()
    monkeypatch.setattr(module, "perf_counter", lambda: next(moments) / 100)
    await pattern_filter().filter(listing_of(NAMES[:3_000]), EVEN)
    assert matched[:4] == [2_048, 512, 128, 32]
    assert sum(matched) == 3_000


@pytest.mark.parametrize("seconds_a_look", [0.0, 3_600.0], ids=["stands still", "leaps"])
async def test_a_namespace_of_many_runs_is_matched_even_if_the_clock_stops_or_leaps(
    matched: list[int], monkeypatch: pytest.MonkeyPatch, seconds_a_look: float
) -> None:
    # Each of 25 runs has at least one step; a step may be eight times the preceding step.
    moments = itertools.count()
    monkeypatch.setattr(module, "perf_counter", lambda: next(moments) * seconds_a_look)
    monkeypatch.setattr("broker.patterns.path_columns.RUN_BLOCKS", 1)
    kept = await pattern_filter().filter(listing_of(NAMES), EVEN)
    assert (len(kept), sum(matched)) == (4_000, 8_000)


@pytest.mark.parametrize(
    ("seconds", "bound"), [(0.0, MOST_STEP_NAMES), (-1.0, MOST_STEP_NAMES), (math.inf, 1)]
)
def test_the_step_size_stays_within_bounds_for_any_measured_time(
    seconds: float, bound: int
) -> None:
    size = _StepSize(LinearTime(EVEN))
    for _ in range(100):
        size.adapt(seconds)
    assert size.names == bound


async def test_a_large_pattern_begins_with_few_names_per_step(matched: list[int]) -> None:
    await pattern_filter().filter(listing_of(NAMES[:100]), "a/b/.*(?:[x-z].{99}){5}|q")
    # 99 times five, and at least three instructions for a character of any kind. (The first call is
    # a probe: Arrow builds the pattern's program with the first name.)
    assert matched[0] == 1
    assert 0 < matched[1] < 65_536 / (3 * 99 * 5)
    assert sum(matched) == 101


def test_the_step_size_follows_the_time_per_name_without_the_cost_of_the_call() -> None:
    # A call with a compilation of 3 ms, sometimes 4, would never count as short.
    size = _StepSize(LinearTime("a/b/.{1000}"))
    size.call_seconds = 0.003
    for _ in range(10):
        size.adapt(0.004 + size.names / 1e7)
    assert size.names > 1_000
    size.adapt(0.5)
    assert size.names < MOST_STEP_NAMES


async def test_a_large_pattern_is_matched_in_few_calls_of_many_names(matched, monkeypatch) -> None:
    # By the clock, every call takes 3 ms, regardless of the number of names.
    moments = itertools.count()
    monkeypatch.setattr(module, "perf_counter", lambda: next(moments) * 0.003)
    await pattern_filter().filter(listing_of(NAMES), "a/b/.{1000}")
    assert sum(matched) == 1 + len(NAMES)
    assert len(matched) < 10


async def test_merged_block_runs_of_a_listing_are_reused_for_another_pattern(monkeypatch) -> None:
    listing, patterns = listing_of(NAMES), pattern_filter(cache_bytes=50_000_000)
    await patterns.filter(listing, EVEN)
    made: list[int] = []
    monkeypatch.setattr("broker.patterns.path_columns.BlockRun", made.append)
    kept = await patterns.filter(listing, "a/b/t-.*7x*")
    # No block was merged again with neighbours
    assert len(kept) == 800
    assert made == []


async def test_a_result_is_cached_by_listing_version_and_pattern(matched: list[int]) -> None:
    listing, patterns = listing_of(NAMES), pattern_filter(cache_bytes=10_000_000)
    first = await patterns.filter(listing, EVEN)
    evaluated = len(matched)
    again = await patterns.filter(listing, EVEN)
    assert again is first
    assert len(matched) == evaluated
    assert await patterns.filter(listing_of(NAMES), EVEN) is not first
    assert await patterns.filter(listing, "a/b/t-0.*") is not first


async def test_a_pattern_with_and_without_a_domain_shares_a_cached_result(
    matched: list[int],
) -> None:
    listing, patterns = listing_of(NAMES), pattern_filter(cache_bytes=10_000_000)
    first = await patterns.filter(listing, f"persistent://{EVEN}")
    evaluated = len(matched)
    assert await patterns.filter(listing, EVEN) is first
    assert len(matched) == evaluated


async def test_the_result_of_a_pattern_that_keeps_all_names_is_cached(matched: list[int]) -> None:
    listing, patterns = listing_of(NAMES), pattern_filter(cache_bytes=10_000)
    await patterns.filter(listing, "a/b/t-.*")
    evaluated = len(matched)
    assert await patterns.filter(listing, "a/b/t-.*") is listing
    assert len(matched) == evaluated


async def test_without_sharing_every_request_is_evaluated(matched: list[int]) -> None:
    listing, patterns = listing_of(NAMES), pattern_filter(share=False, cache_bytes=10_000_000)
    first = await patterns.filter(listing, EVEN)
    evaluated = sum(matched)
    assert await patterns.filter(listing, EVEN) is not first
    assert sum(matched) == 2 * evaluated


async def test_cached_results_do_not_keep_an_old_listing_in_memory() -> None:
    patterns = pattern_filter(cache_bytes=10_000_000)
    cache = patterns._cache
    listing = listing_of(NAMES)
    await patterns.filter(listing, EVEN)
    await patterns.filter(listing, "a/b/t-.*")
    assert cache.statistics().entries == 2
    gone = weakref.ref(listing)
    del listing
    await asyncio.sleep(0)
    gc.collect()
    assert gone() is None
    assert (cache.statistics().entries, cache.statistics().bytes) == (0, 0)


async def test_columns_of_partitioned_names_are_reused_for_another_pattern(monkeypatch) -> None:
    names = sorted(f"persistent://a/b/t-{n}-partition-{n % 7}".encode() for n in range(4_000))
    listing, patterns = listing_of(names), pattern_filter(cache_bytes=10_000_000)
    first = await patterns.filter(listing, "a/b/t-.?")
    made: list[int] = []
    monkeypatch.setattr("broker.patterns.path_columns.without_partitions", made.append)
    again = await patterns.filter(listing, "a/b/t-[0-9]")
    assert len(first) == 10
    assert list(again.names()) == list(first.names())
    assert made == []


async def test_no_two_new_patterns_are_compiled_in_a_turn_of_the_event_loop(monkeypatch) -> None:
    listing, patterns = listing_of(NAMES[:10]), pattern_filter()
    compiled: list[str] = []
    compiling = LinearTime.__init__

    def counted(self: LinearTime, text: str) -> None:
        compiled.append(text)
        compiling(self, text)

    monkeypatch.setattr(LinearTime, "__init__", counted)
    asked = [
        asyncio.create_task(patterns.filter(listing, f"a/b/t-.*(new|{number})"))
        for number in range(4)
    ]
    before, most = 0, 0
    while not all(task.done() for task in asked):
        await asyncio.sleep(0)
        before, most = len(compiled), max(most, len(compiled) - before)
    assert (len(compiled), most) == (4, 1)


async def test_a_repeated_pattern_is_answered_without_waiting_for_a_turn() -> None:
    listing, patterns = listing_of(NAMES[:10]), pattern_filter(cache_bytes=10_000_000)
    await patterns.filter(listing, "a/b/t-[0-8]")
    async with patterns._steps._turn:
        again = await started(patterns.filter(listing, "a/b/t-[0-8]"))
        assert again.done()


async def test_the_kept_names_are_assembled_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    # The branches above 10,000,000 names took 43 ms.
    monkeypatch.delattr(Selection, "sequence")
    kept = await pattern_filter().filter(listing_of(NAMES[:100]), EVEN)
    assert [name.encode() for name in kept.names()] == NAMES[:100:2]
