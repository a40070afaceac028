"""The search finds limits sufficient for every strain, and the edge below."""

from dataclasses import replace

import pytest

from loadgen.studies.advise.goal import Goal, Outcome
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import Question
from loadgen.studies.advise.search import OutOfTimeError, Tries, slower, strains
from tests.unit.loadgen.studies.advise.asked import needs, question

GOAL, ASKED = Goal(), question()
HARDER = slower(ASKED, 2)


def setting(heap_mb: int, direct_mb: int | None = None) -> Setting:
    return Setting(Limits(heap_mb=heap_mb, direct_mb=heap_mb if direct_mb is None else direct_mb))


def met(*, back: int = 100) -> Outcome:
    return Outcome(100, back, 1.0, 100, 0)


def needing(as_asked: int, harder: int) -> Tries:
    def storm(asked: Question, tried: Setting) -> Outcome:
        return needs(*(2 * [harder if asked is HARDER else as_asked]))(asked, tried)

    return Tries(storm, GOAL)


@pytest.mark.parametrize(
    ("as_asked", "harder", "found"), [(5, 5, 6), (5, 12, 14), (30, 5, 32), (90, 500, 90)]
)
def test_limits_grow_until_they_meet_the_goal_under_every_strain(as_asked, harder, found) -> None:
    tries = needing(as_asked, harder)
    assert tries.climb(setting(6), setting(90), [ASKED, HARDER]) == setting(found)


def test_only_the_limit_that_is_too_small_grows() -> None:
    tries = Tries(needs(5, 20), GOAL)
    assert tries.climb(setting(6, 6), setting(90), [ASKED]) == setting(6, 21)


def test_grown_limits_stay_within_the_accounted_memory() -> None:
    # Today's heap is most of the accountable memory
    tries = Tries(needs(5, 60), GOAL)
    found = tries.climb(setting(80, 20), setting(25, 75), [ASKED])
    assert found.broker.accounted_mb <= 100


def test_a_strain_that_fails_with_all_memory_does_not_raise_the_limits() -> None:
    # A slow processor is no reason for memory.
    tries = Tries(lambda asked, _: met(back=50 if asked is HARDER else 100), GOAL)
    assert tries.climb(setting(6), setting(90), [ASKED, HARDER]) == setting(6)


def test_limits_grow_until_they_do_as_well_as_all_memory() -> None:
    def storm(asked: Question, tried: Setting) -> Outcome:
        return met(back=min(50, tried.broker.heap_mb) if asked is HARDER else 100)

    tries = Tries(storm, GOAL)
    assert tries.climb(setting(6), setting(90), [ASKED, HARDER]).broker.heap_mb >= 49


def test_the_edge_passes_and_is_close_to_the_smallest_passing_limits() -> None:
    tries = needing(23, 23)
    edge = tries.edge([ASKED], setting(90), setting(2), setting(90))
    assert not tries.misses(ASKED, edge)
    assert 23 <= edge.broker.heap_mb <= 25


def test_the_smallest_passing_limits_are_never_below_the_largest_answer() -> None:
    tries = needing(1, 1)
    least = setting(5, 3)
    assert tries.edge([ASKED], setting(90), least, setting(90)) == least


def test_each_setting_is_tried_once_per_question() -> None:
    asked: list[tuple[Question, Setting]] = []

    def storm(of: Question, tried: Setting) -> Outcome:
        asked.append((of, tried))
        return needs(20, 20)(of, tried)

    tries = Tries(storm, GOAL)
    tries.climb(setting(6), setting(90), [ASKED, HARDER])
    tries.climb(setting(6), setting(90), [ASKED, HARDER])
    assert len(asked) == len(tries.done)


def test_a_storm_that_is_cut_ends_the_search() -> None:
    def storm(asked: Question, tried: Setting) -> Outcome:
        del asked, tried
        raise OutOfTimeError

    with pytest.raises(OutOfTimeError):
        Tries(storm, GOAL).climb(setting(6), setting(90), [ASKED])


def test_a_storm_that_stalled_misses_the_goal() -> None:
    assert GOAL.misses(replace(met(), stalled_seconds=2)) == ["a growth stall of 2 s"]


def test_strains_have_more_clients_more_topics_or_a_slower_broker() -> None:
    asked, *harder = strains(ASKED)
    assert asked is ASKED
    assert max(each.clients for each in harder) == 50
    assert max(each.largest.topics for each in harder) == 60_000
    slowness = sorted(each.times.accept / ASKED.times.accept for each in harder)
    assert slowness == pytest.approx([1 / 3, 1, 3, 3])


def test_a_measured_broker_is_slowed_by_its_measured_band() -> None:
    times = ASKED.times.model_copy(update={"band": 2.2})
    slow = strains(replace(ASKED, times=times))[1]
    assert slow.strain == "a broker 2.2x as slow"
    assert slow.times.accept == pytest.approx(2.2 * times.accept)
