"""A pattern that only a backtracking engine can compile must not stop anybody else."""

from __future__ import annotations

import asyncio

import pytest

from broker.listing import BACKTRACKING_SECONDS, PatternFilter
from proto.patterns import InvalidPatternError, RegexImplementation
from proto.topic_blocks import TopicSequence
from proto.topic_listing import TopicListing
from tests.support.manual_clock import ManualClock
from tests.support.settle import settle

CATASTROPHIC = "(?!x)(?:(?:a|a)*)*b"
NAMES = [f"persistent://t/n/{'a' * 40}-{index}".encode() for index in range(2_000)]


def listing() -> TopicListing:
    return TopicListing(TopicSequence.from_names(NAMES))


def pattern_filter(clock: ManualClock) -> PatternFilter:
    return PatternFilter(
        enabled=True,
        max_length=50,
        implementation=RegexImplementation.RE2J_WITH_JDK_FALLBACK,
        share=True,
        clock=clock,
    )


async def test_a_pattern_that_takes_too_long_costs_its_request_an_error() -> None:
    # Given
    clock = ManualClock()
    evaluation = asyncio.ensure_future(pattern_filter(clock).filter(listing(), CATASTROPHIC))
    await settle()
    # When
    clock.advance(BACKTRACKING_SECONDS)
    # Then
    with pytest.raises(InvalidPatternError, match="more than 1 s on 2000 topics"):
        await evaluation


async def test_others_are_served_while_a_slow_pattern_is_evaluated() -> None:
    # Given
    clock = ManualClock()
    slow = asyncio.ensure_future(pattern_filter(clock).filter(listing(), CATASTROPHIC))
    await settle()
    # When
    quick = await pattern_filter(clock).filter(listing(), "t/n/a*-7")
    # Then
    assert list(quick.names()) == [f"persistent://t/n/{'a' * 40}-7"]
    assert not slow.done()
    clock.advance(BACKTRACKING_SECONDS)
    with pytest.raises(InvalidPatternError):
        await slow


async def test_look_around_keeps_what_it_should() -> None:
    # When
    kept = await pattern_filter(ManualClock()).filter(listing(), "t/n/(?=a).*-1[0-9]")
    # Then
    assert len(kept) == 10
