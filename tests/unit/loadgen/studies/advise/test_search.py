"""The search finds the smallest limits of any engine for which more is never worse."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.studies.advise.bounds import Least
from loadgen.studies.advise.goal import Goal, Outcome
from loadgen.studies.advise.limits import Knob, Limits, Setting, memory_knobs, step
from loadgen.studies.advise.search import OutOfTimeError, Tries

GOAL = Goal()
LEAST = Least(heap_mb=2, direct_mb=3)
LARGEST = 200


def outcome(*, met: bool) -> Outcome:
    return Outcome(100, 100 if met else 0, 1.0, 100, 0)


def setting(heap_mb: int, direct_mb: int, proxy: tuple[int, int] | None = None) -> Setting:
    limits = Limits(heap_mb=heap_mb, direct_mb=direct_mb)
    if proxy is None:
        return Setting(limits)
    return Setting(limits, replace(limits, heap_mb=proxy[0], direct_mb=proxy[1]))


sizes = st.integers(3, LARGEST)


@given(needed=st.lists(st.tuples(sizes, sizes), min_size=1, max_size=4), guess=sizes)
def test_the_advised_value_passes_and_one_step_below_fails(
    needed: list[tuple[int, int]], guess: int
) -> None:
    # Given: an engine that is content with any of these pairs, or more
    def engine(tried: Setting) -> Outcome:
        limits = tried.broker
        return outcome(
            met=any(
                limits.heap_mb >= heap and limits.direct_mb >= direct for heap, direct in needed
            )
        )

    tries = Tries(engine, GOAL)
    # When
    found = tries.search(setting(guess, guess), setting(LARGEST, LARGEST), LEAST)
    # Then
    assert found.complete
    assert not tries.misses(found.setting)
    for knob in memory_knobs(found.smallest):
        assert tries.misses(knob.moved(found.smallest, -1))


@given(broker=st.tuples(sizes, sizes), proxy=st.tuples(sizes, sizes))
def test_both_servers_are_advised_each_for_itself(
    broker: tuple[int, int], proxy: tuple[int, int]
) -> None:
    # Given
    needed = setting(*broker, proxy)

    def engine(tried: Setting) -> Outcome:
        knobs = memory_knobs(needed)
        return outcome(met=all(knob.value(tried) >= knob.value(needed) for knob in knobs))

    most = setting(LARGEST, LARGEST, (LARGEST, LARGEST))
    # When
    found = Tries(engine, GOAL).search(setting(3, 3, (3, 3)), most, LEAST)
    # Then
    assert found.smallest == needed
    for knob in memory_knobs(needed):
        value = knob.value(found.setting)
        assert value in (
            knob.value(needed),
            knob.value(needed) + step(knob.value(needed)) // 2,
        )
        assert value - step(value) < knob.value(needed)


def test_what_was_found_when_time_ran_out_is_the_answer() -> None:
    # Given: an engine that is cut in its fifth try
    def engine(tried: Setting) -> Outcome:
        if len(tries.done) == 4:
            raise OutOfTimeError
        return outcome(met=tried.broker.direct_mb >= 7)

    tries = Tries(engine, GOAL)
    # When
    found = tries.search(setting(90, 90), setting(90, 90), LEAST)
    # Then
    assert not found.complete
    assert not tries.misses(found.setting)
    assert len(tries.done) == 4


def test_each_setting_is_tried_once() -> None:
    # Given
    asked: list[Setting] = []

    def engine(tried: Setting) -> Outcome:
        asked.append(tried)
        return outcome(met=tried.broker.direct_mb >= 41)

    # When
    Tries(engine, GOAL).search(setting(50, 50), setting(90, 90), LEAST)
    # Then
    assert len(asked) == len(set(asked))
    assert len(asked) < 20


@pytest.mark.parametrize(
    ("needed", "tried"), [(5, [6]), (20, [6, 12, 24]), (90, [6, 12, 24])], ids=str
)
def test_limits_that_were_computed_are_doubled_until_they_meet_the_goal(
    needed: int, tried: list[int]
) -> None:
    # Given
    tries = Tries(lambda each: outcome(met=each.broker.direct_mb >= needed), GOAL)
    # When
    found = tries.climb(setting(6, 6), setting(90, 90))
    # Then
    assert [each.broker.direct_mb for each in tries.done] == tried
    assert found.broker.direct_mb == (tried[-1] if needed <= tried[-1] else 90)


def test_a_step_is_the_larger_of_one_and_a_tenth() -> None:
    # Given
    knob = Knob("broker", "direct_mb")
    # Then
    assert [step(value) for value in (1, 10, 11, 100, 101)] == [1, 1, 2, 10, 11]
    assert knob.moved(setting(5, 20), -1) == setting(5, 18)
    assert knob.moved(setting(5, 20), 1) == setting(5, 22)
