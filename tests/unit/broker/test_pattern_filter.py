"""Patterns on listings: what they cost, who shares them, and who they may hold up."""

from __future__ import annotations

import asyncio

import pytest

from broker.listing import BLOCKS_PER_TURN, PatternFilter
from proto import patterns
from proto.patterns import RegexImplementation
from proto.topic_blocks import TopicSequence
from proto.topic_listing import TopicListing

NAMES = [f"persistent://a/b/t-{number:05d}".ljust(200, "x").encode() for number in range(8_000)]
EVEN = "a/b/t-[0-9]*[02468]x*"


def listing_of(names: list[bytes]) -> TopicListing:
    return TopicListing(TopicSequence.from_sorted(names))


def pattern_filter(*, share: bool = True) -> PatternFilter:
    return PatternFilter(
        enabled=True,
        max_length=50,
        implementation=RegexImplementation.RE2J_WITH_JDK_FALLBACK,
        share=share,
    )


@pytest.mark.parametrize("share", [True, False])
async def test_a_pattern_that_keeps_everything_copies_nothing(share: bool) -> None:
    # Given
    listing = listing_of(NAMES)
    # When
    kept = await pattern_filter(share=share).filter(listing, "a/b/t-.*")
    # Then
    assert kept is listing


async def test_a_block_that_is_kept_whole_is_the_same_block() -> None:
    # Given
    listing = listing_of(NAMES)
    # When
    kept = await pattern_filter().filter(listing, "a/b/t-0.*")
    # Then
    (before,), (after,) = listing.sequences, kept.sequences
    assert list(after.names()) == [name for name in NAMES if b"/t-0" in name]
    assert set(list(after.wire_parts)[:-1]) <= set(before.wire_parts)


async def test_what_a_pattern_keeps_is_what_a_new_sequence_of_it_would_be() -> None:
    # Given
    even = [name for name in NAMES if int(name[19:24]) % 2 == 0]
    # When
    kept = await pattern_filter().filter(listing_of(NAMES), EVEN)
    # Then
    (sequence,), expected = kept.sequences, TopicSequence.from_sorted(even)
    assert list(sequence.names()) == even
    assert sequence.totals == expected.totals


async def test_an_evaluation_goes_on_while_somebody_waits_and_ends_with_the_last() -> None:
    # Given
    listing, patterns_ = listing_of(NAMES), pattern_filter()
    first, second = (asyncio.create_task(patterns_.filter(listing, EVEN)) for _ in range(2))
    await asyncio.sleep(0)
    # When
    first.cancel()
    await asyncio.sleep(0)
    under_way = len(patterns_._running)
    second.cancel()
    for _ in range(3):  # far fewer turns than the evaluation would take
        await asyncio.sleep(0)
    # Then
    assert (under_way, len(patterns_._running)) == (1, 0)
    assert len(asyncio.all_tasks()) == 1


async def test_many_evaluations_hold_up_the_loop_for_one_step_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given
    listing, patterns_ = listing_of(NAMES), pattern_filter()
    evaluated = 0
    keep = patterns._LinearTime.keep

    def counted(self: patterns._LinearTime, names: list[bytes]) -> list[bytes]:
        nonlocal evaluated
        evaluated += 1
        return list(keep(self, names))

    monkeypatch.setattr(patterns._LinearTime, "keep", counted)
    tasks = [asyncio.create_task(patterns_.filter(listing, f"{EVEN}|{n}")) for n in range(10)]
    most = before = 0
    # When
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        most, before = max(most, evaluated - before), evaluated
    # Then
    blocks = len(list(listing.sequences[0].blocks()))
    assert evaluated == 10 * blocks
    assert blocks > 2 * BLOCKS_PER_TURN
    assert most <= BLOCKS_PER_TURN
